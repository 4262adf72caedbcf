// How the search of the site orders its results, and where they lead: to the heading that has the
// most words of the query. Sphinx counts one word of a heading as much as all of them.
const wordsOf = (text) => text.toLowerCase().split(/\W+/).filter(Boolean);
const alike = (one, other) =>
  one === other || (Math.min(one.length, other.length) > 2 && (one.startsWith(other) || other.startsWith(one)));

// What people look for when something does not work comes first, what contributors read last.
const PLACES = [
  ["docs/selector", 8],
  ["docs/how-to/wrong-choice", 6],
  ["docs/how-to/driver-", 5],
  ["docs/how-to/", 3],
  ["docs/tutorials/", 3],
  ["docs/", 0],
  ["README", 0],
  ["", -5],
];

function headings(page) {
  const number = Search._index.docnames.indexOf(page);
  return Object.entries(Search._index.alltitles).flatMap(([heading, places]) =>
    places
      .filter(([document]) => document === number)
      .map(([, id]) => ({ heading, id, words: wordsOf(heading) })),
  );
}

var Scorer = {
  score: (result) => {
    const [page, title, anchor, , score] = result;
    const typed = new URLSearchParams(window.location.search).get("q") || "";
    const query = [...new Set(wordsOf(typed))].filter((word) => !stopwords.has(word));
    const known = (words) => query.filter((word) => words.some((other) => alike(word, other))).length;
    let best = { id: null, count: known(wordsOf(title)) };
    const all = headings(page);
    for (const { heading, id, words } of all) {
      if (known(words) > best.count) best = { heading, id, count: known(words) };
    }
    if (!anchor && best.id) {
      result[1] = `${title} > ${best.heading}`;
      result[2] = `#${best.id}`;
    }
    const anywhere = known(all.flatMap(({ words }) => words));
    const [, place] = PLACES.find(([start]) => page.startsWith(start));
    const inTitle = best.count && !best.id ? 1 : 0;
    return score + 5 * best.count + 2 * anywhere + inTitle + place;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
