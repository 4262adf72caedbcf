// How the search of the site orders its results: pages with a heading that has many words of the
// query come first. Sphinx counts one word of a heading as much as all of them.
function wordsInHeading(page, query) {
  const number = Search._index.docnames.indexOf(page);
  let most = 0;
  for (const [heading, places] of Object.entries(Search._index.alltitles)) {
    if (places.some(([document]) => document === number)) {
      const words = heading.toLowerCase().split(/[^\w.]+/);
      most = Math.max(most, query.filter((word) => words.includes(word)).length);
    }
  }
  return most;
}

var Scorer = {
  score: ([page, , , , score]) => {
    const typed = new URLSearchParams(window.location.search).get("q") || "";
    const query = [...new Set(typed.toLowerCase().split(/[^\w.]+/))].filter(Boolean);
    return score + 5 * wordsInHeading(page, query);
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
