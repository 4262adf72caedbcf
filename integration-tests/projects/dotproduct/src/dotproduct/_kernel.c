/* dot.h for Python. */

#include <Python.h>

#include "dot.h"

static PyObject *run(PyObject *left, PyObject *right, long times)
{
    char *a, *b;
    Py_ssize_t size, other;
    volatile uint32_t total = 0; /* or the compiler does it once */
    if (PyBytes_AsStringAndSize(left, &a, &size) < 0 ||
        PyBytes_AsStringAndSize(right, &b, &other) < 0) {
        return NULL;
    }
    if (size != other) {
        PyErr_SetString(PyExc_ValueError, "both need the same length");
        return NULL;
    }
    for (long i = 0; i < times; i++) {
        total = dot((const uint8_t *)a, (const int8_t *)b, (size_t)size);
    }
    return PyLong_FromUnsignedLong(total);
}

static PyObject *kernel_dot(PyObject *module, PyObject *args)
{
    PyObject *left, *right;
    return PyArg_ParseTuple(args, "OO", &left, &right) ? run(left, right, 1) : NULL;
}

static PyObject *kernel_repeat(PyObject *module, PyObject *args)
{
    PyObject *left, *right;
    long times;
    return PyArg_ParseTuple(args, "OOl", &left, &right, &times) ? run(left, right, times) : NULL;
}

static PyMethodDef methods[] = {
    {"dot", kernel_dot, METH_VARARGS, "dot(left, right): the dot product modulo 2**32."},
    {"repeat", kernel_repeat, METH_VARARGS, "repeat(left, right, times): dot, several times."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_kernel", NULL, -1, methods};

PyMODINIT_FUNC PyInit__kernel(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddStringConstant(module, "PATH", PATH) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
