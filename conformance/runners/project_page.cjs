// Plays cases with the script of project pages: a question in JSON on each line of standard input,
// the answer on a line of standard output. The first argument is the script.
"use strict";
const { readFileSync } = require("node:fs");
const { createInterface } = require("node:readline");
const { runInThisContext } = require("node:vm");

runInThisContext(readFileSync(process.argv[2], "utf8"));
const { machineOf, rank, readPlatform, select } = globalThis.variantChoice;

function machine(question) {
  if (question.file !== undefined) {
    return { isFile: true, namespaces: readPlatform(question.file).namespaces };
  }
  return machineOf(question.data.machines, question.facts);
}

function pairs(namespaces) {
  return [...namespaces].map(([name, features]) => [name, [...features]]);
}

function answered(question) {
  const found = machine(question);
  found.versions = new Map(question.versions || []);
  if (!question.data.releases) return { namespaces: pairs(found.namespaces) };
  const release = question.data.releases[question.release || 0];
  const { files, unknown } = select(question.data, release, found, question.target);
  const ranking = release.variants && rank(question.data, release, found, question.target || 0);
  return { ...ranking, files, unknown, namespaces: pairs(found.namespaces) };
}

createInterface({ input: process.stdin }).on("line", (line) => {
  let answer;
  try {
    answer = answered(JSON.parse(line));
  } catch (error) {
    answer = { error: String(error.message) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
