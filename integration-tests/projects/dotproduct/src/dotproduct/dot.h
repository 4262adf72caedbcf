/* The dot product of unsigned bytes with signed bytes, modulo 2**32.

   The compiler's flags choose the path; PATH names it. */

#include <stddef.h>
#include <stdint.h>

#if defined(__AVX512VNNI__) || defined(__AVX512BW__) || defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

/* Every path sums up whole vectors and leaves the rest to the loop at the end of dot(). */

#if defined(__AVX512VNNI__)
#define PATH "avx512vnni"
#define WIDTH 64
static uint32_t vectors(const uint8_t *a, const int8_t *b, size_t count)
{
    __m512i sum = _mm512_setzero_si512();
    for (size_t i = 0; i < count; i++) {
        sum = _mm512_dpbusd_epi32(sum, _mm512_loadu_si512(a + i * WIDTH),
                                  _mm512_loadu_si512(b + i * WIDTH));
    }
    return (uint32_t)_mm512_reduce_add_epi32(sum);
}

#elif defined(__AVX512BW__)
#define PATH "avx512"
#define WIDTH 32
static uint32_t vectors(const uint8_t *a, const int8_t *b, size_t count)
{
    __m512i sum = _mm512_setzero_si512();
    for (size_t i = 0; i < count; i++) {
        __m512i left = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(a + i * WIDTH)));
        __m512i right = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)(b + i * WIDTH)));
        sum = _mm512_add_epi32(sum, _mm512_madd_epi16(left, right));
    }
    return (uint32_t)_mm512_reduce_add_epi32(sum);
}

#elif defined(__AVX2__)
#define PATH "avx2"
#define WIDTH 16
static uint32_t vectors(const uint8_t *a, const int8_t *b, size_t count)
{
    __m256i sum = _mm256_setzero_si256();
    uint32_t lanes[8], total = 0;
    for (size_t i = 0; i < count; i++) {
        __m256i left = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(a + i * WIDTH)));
        __m256i right = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(b + i * WIDTH)));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(left, right));
    }
    _mm256_storeu_si256((__m256i *)lanes, sum);
    for (int i = 0; i < 8; i++) {
        total += lanes[i];
    }
    return total;
}

#elif defined(__ARM_NEON)
#define PATH "neon"
#define WIDTH 8
static uint32_t vectors(const uint8_t *a, const int8_t *b, size_t count)
{
    int32x4_t sum = vdupq_n_s32(0);
    uint32_t lanes[4];
    for (size_t i = 0; i < count; i++) {
        int16x8_t left = vreinterpretq_s16_u16(vmovl_u8(vld1_u8(a + i * WIDTH)));
        int16x8_t right = vmovl_s8(vld1_s8(b + i * WIDTH));
        sum = vmlal_s16(sum, vget_low_s16(left), vget_low_s16(right));
        sum = vmlal_s16(sum, vget_high_s16(left), vget_high_s16(right));
    }
    vst1q_u32(lanes, vreinterpretq_u32_s32(sum));
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
}

#else
#define PATH "baseline"
#define WIDTH 1
static uint32_t vectors(const uint8_t *a, const int8_t *b, size_t count)
{
    uint32_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += (uint32_t)(a[i] * b[i]);
    }
    return total;
}
#endif

static uint32_t dot(const uint8_t *a, const int8_t *b, size_t size)
{
    size_t count = size / WIDTH;
    uint32_t total = vectors(a, b, count);
    for (size_t i = count * WIDTH; i < size; i++) {
        total += (uint32_t)(a[i] * b[i]);
    }
    return total;
}
