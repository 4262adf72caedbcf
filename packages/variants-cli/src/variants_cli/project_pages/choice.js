"use strict";
// The choice of a variant, from the data on the page (see choice_data.py). Pure functions. What
// takes rules was done by the engine, which wrote the data; this compares, by PEP 825, "Variant
// ordering". Names come from files of others, so that no object of the data is indexed by them,
// and no "<" is followed by a letter: some readers of pages would take that for a tag.
globalThis.variantChoice = (() => {
  const MOST_VALUES = 4; // of a list in a phrase
  const NOTICE_LENGTH = 400;

  // --- Platform files: tables, arrays of tables, strings and lists of strings of TOML

  function readPlatform(text) {
    const tree = readToml(text);
    if (!tree.has("metadata") && !tree.has("provider")) {
      throw new Error("not a platform file: it has no [metadata] and no [[provider]] table");
    }
    const version = table(tree.get("metadata"), "metadata").get("version");
    if (version !== undefined && (typeof version !== "string" || version.split(".")[0] !== "0")) {
      throw new Error("metadata.version is not supported, only 0.1 is");
    }
    const providers = tree.get("provider") || [];
    if (!Array.isArray(providers)) throw new Error("provider is not a list of tables");
    const namespaces = new Map();
    for (const item of providers) {
      const provider = table(item, "provider");
      const namespace = named(provider.get("namespace"), /^[a-z0-9_]{1,128}$/, "namespace");
      if (namespaces.has(namespace)) throw new Error(`namespace ${namespace} is listed twice`);
      const features = new Map();
      for (const [feature, values] of table(provider.get("properties"), "properties")) {
        named(feature, /^[a-z0-9_]{1,128}$/, "name");
        if (!Array.isArray(values)) throw new Error(`${feature} is not a list of strings`);
        for (const value of values) named(value, /^[a-z0-9_.]{1,64}$/, "value");
        if (new Set(values).size !== values.length) {
          throw new Error(`${feature} lists a value twice`);
        }
        if (values.length) features.set(feature, values); // an empty list: not supported
      }
      namespaces.set(namespace, features);
    }
    return { namespaces, target: table(tree.get("target"), "target") };
  }

  function table(value, name) {
    if (value === undefined) return new Map();
    if (!(value instanceof Map)) throw new Error(`${name} is not a table`);
    return value;
  }

  function named(value, pattern, kind) {
    if (typeof value !== "string" || !pattern.test(value)) {
      throw new Error(`${JSON.stringify(value)} is not a valid ${kind}`);
    }
    return value;
  }

  function readToml(text) {
    if (text.length > 262144) throw new Error("larger than 256 KiB, the most that is read");
    const source = text.replace(/\r\n/g, "\n");
    let place = 0;
    const fail = (problem) => {
      const line = source.slice(0, place).split("\n").length;
      throw new Error(`line ${line}: ${problem}`);
    };
    const match = (pattern) => {
      pattern.lastIndex = place;
      const found = pattern.exec(source);
      if (found) place = pattern.lastIndex;
      return found;
    };
    const space = () => match(/[ \t]*/y);
    const blank = () => match(/(?:[ \t\n]|#[^\n]*)*/y);
    const endOfLine = () => {
      match(/[ \t]*(?:#[^\n]*)?/y);
      if (place < source.length && !match(/\n/y)) fail("expected the end of the line");
    };

    function string() {
      const found = match(/'([^'\n]*)'|"((?:[^"\\\n]|\\.)*)"/y);
      if (!found) return fail("expected a text in quotation marks");
      if (source[place] === found[0][0] && found[0].length === 2) fail("long texts are not read");
      if (found[1] !== undefined) return found[1];
      return found[2].replace(/\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)/g, (all, code) => {
        if (code.length > 1) {
          const point = parseInt(code.slice(1), 16);
          if (point > 0x10ffff || (point >> 11) === 0x1b) fail(`${all} is no character`);
          return String.fromCodePoint(point);
        }
        const known = 'btnfr"\\'.indexOf(code);
        return known < 0 ? fail(`${all} is not an escape`) : '\b\t\n\f\r"\\'[known];
      });
    }

    function value() {
      if (match(/\[/y)) {
        const items = [];
        for (;;) {
          blank();
          if (match(/\]/y)) return items;
          items.push(string());
          blank();
          if (!match(/,/y) && source[place] !== "]") fail('expected "," or "]"');
        }
      }
      const word = match(/(?:true|false|[+-]?[0-9][0-9A-Za-z_.:+-]*)/y);
      if (word) return word[0] === "true" || (word[0] === "false" ? false : Number(word[0]));
      return string();
    }

    function key() {
      const parts = [];
      do {
        space();
        const bare = match(/[A-Za-z0-9_-]+/y);
        parts.push(bare ? bare[0] : string());
        space();
      } while (match(/\./y));
      return parts;
    }

    // Where a path leads: of an array of tables, to its last table.
    function reach(from, path) {
      let found = from;
      for (const part of path) {
        if (!found.has(part)) found.set(part, new Map());
        found = found.get(part);
        if (Array.isArray(found)) found = found[found.length - 1];
        if (!(found instanceof Map)) fail(`${part} is not a table`);
      }
      return found;
    }

    const tree = new Map();
    const opened = new Set();
    let current = tree;
    for (blank(); place < source.length; blank()) {
      const several = match(/\[\[/y);
      if (several || match(/\[/y)) {
        const path = key();
        if (!match(several ? /\]\]/y : /\]/y)) fail('expected "]"');
        const parent = reach(tree, path.slice(0, -1));
        const last = path[path.length - 1];
        if (several) {
          if (!parent.has(last)) parent.set(last, []);
          if (!Array.isArray(parent.get(last))) fail(`${last} is not a list of tables`);
          parent.get(last).push(new Map());
        }
        current = reach(parent, [last]);
        if (!several && (opened.has(current) || Array.isArray(parent.get(last)))) {
          fail(`the table ${last} is there twice`);
        }
        opened.add(current);
      } else {
        const path = key();
        if (!match(/=/y)) fail('expected "="');
        space();
        const parent = reach(current, path.slice(0, -1));
        const last = path[path.length - 1];
        if (parent.has(last)) fail(`${last} is there twice`);
        parent.set(last, value());
      }
      endOfLine();
    }
    return tree;
  }

  // --- Machines: what the form and the named machines stand for, by the data of machines.py

  function machineOf(machines, facts) {
    const namespaces = new Map();
    if (facts.nvidia) {
      const [driver, capability] = facts.nvidia;
      const place = machines.cuda.indexOf(driver);
      const gpu = machines.capabilities.find((item) => item[0] === capability);
      if (place >= 0 && driver.includes(".")) {
        const [lower, upper, code] = machines.features;
        const features = new Map([[lower, machines.cuda.slice(place)]]);
        if (place) features.set(upper, machines.cuda.slice(0, place));
        if (gpu) features.set(code, gpu[2]);
        namespaces.set("nvidia", features);
      }
    }
    if (facts.cpu) {
      const [namespace, bits] = facts.cpu;
      const family = machines.families.find((item) => item[0] === namespace);
      const mask = BigInt(`0x${bits}`);
      const features = new Map();
      family[2].forEach(([feature, value], place) => {
        if ((mask >> BigInt(place)) & 1n) {
          features.set(feature, [...(features.get(feature) || []), value]);
        }
      });
      namespaces.set(namespace, features);
    }
    for (const [namespace, features] of facts.more || []) {
      namespaces.set(namespace, new Map(features));
    }
    return { isFile: false, namespaces };
  }

  // --- Compatibility and order (pep_variants.choose.ranking)

  // Namespace to what is supported of it. `target` is a system and a Python, as their place.
  function supportOf(data, release, machine, target) {
    const found = new Map();
    for (const [namespace, unlisted, detected] of release.supports) {
      if (machine.isFile && machine.namespaces.has(namespace)) {
        found.set(namespace, { features: machine.namespaces.get(namespace), notice: "" });
        continue;
      }
      const places = machine.isFile ? unlisted : detected;
      const given = data.supports[places.length > 1 ? places[target] : places[0]];
      const features =
        given.builtin === undefined
          ? new Map(given.features || [])
          : machine.namespaces.get(given.builtin) || new Map();
      found.set(namespace, { features, notice: given.notice || "" });
    }
    // Conditions between projects, which the resolver sees to: met, unless a version is given.
    const abi = release.abi.map(([project, values]) => [
      project,
      values.filter((value) => agrees(value, machine.versions?.get(project))),
    ]);
    const met = new Map(abi.filter(([, values]) => values.length));
    found.set(data.abi, { features: met, notice: "" });
    return found;
  }

  // Whether one of two releases contains the other: 2 and 2.9 do, 2.8 and 2.9 do not.
  function agrees(one, other) {
    return !other || `${one}.`.startsWith(`${other}.`) || `${other}.`.startsWith(`${one}.`);
  }

  const unique = (items) => [...new Set(items)];

  // Namespace to feature to value to its place, 0 is the best.
  function placesOf(data, release, support) {
    const places = new Map();
    const priorities = new Map(release.features);
    const properties = new Map(release.properties);
    let base = 0;
    for (const namespace of unique([...release.namespaces, data.abi])) {
      const offered = support.get(namespace).features;
      const fronts = new Map(properties.get(namespace) || []);
      const byFeature = new Map();
      const first = (priorities.get(namespace) || []).filter((name) => offered.has(name));
      for (const feature of unique([...first, ...offered.keys()])) {
        const values = offered.get(feature);
        const there = new Set(values);
        const front = (fronts.get(feature) || []).filter((value) => there.has(value));
        const ordered = unique([...front, ...values]);
        byFeature.set(feature, new Map(ordered.map((value, place) => [value, base + place])));
        base += ordered.length;
      }
      places.set(namespace, byFeature);
    }
    return places;
  }

  function kept(places, [namespace, feature, values]) {
    const known = places.get(namespace)?.get(feature) || new Map();
    return values.filter((value) => known.has(value)).sort((a, b) => known.get(a) - known.get(b));
  }

  function compared(one, other) {
    for (let place = 0; place < one.length && place < other.length; place += 1) {
      if (one[place] !== other[place]) return one[place] < other[place] ? -1 : 1;
    }
    return one.length - other.length;
  }

  const byText = (one, other) => (one < other ? -1 : one > other ? 1 : 0);

  // Every variant of a release, compatible ones in order, the others by label.
  function rank(data, release, machine, target) {
    const support = supportOf(data, release, machine, target);
    const places = placesOf(data, release, support);
    const place = (item, value) => places.get(item[0]).get(item[1]).get(value);
    const fitting = [];
    const rejected = [];
    for (const [label, numbers] of release.variants) {
      const needs = numbers.map((number) => data.requirements[number]);
      const lacking = needs.filter((item) => !kept(places, item).length);
      if (lacking.length) {
        rejected.push({ label, needs, lacking });
        continue;
      }
      const best = (item) => place(item, kept(places, item)[0]);
      const ascending = (items) => items.map(best).sort((a, b) => a - b);
      const key = ascending(needs.filter((item) => item[0] !== data.abi));
      let tie = label === "null" ? [Infinity] : [];
      const abi = ascending(needs.filter((item) => item[0] === data.abi));
      if (abi.length) tie = abi;
      // The end of a key sorts behind everything: the longer of two keys comes first.
      fitting.push({ label, needs, key: [...key, Infinity], tie });
    }
    fitting.sort(
      (a, b) => compared(a.key, b.key) || compared(a.tie, b.tie) || byText(a.label, b.label),
    );
    rejected.sort((a, b) => byText(a.label, b.label));
    return {
      fitting: fitting.map(({ label, needs }) => ({
        label,
        needs,
        why: whyChosen(data, release, places, needs) || "always fits",
      })),
      rejected: rejected.map(({ label, lacking }) => ({
        label,
        lacking: lacking.map(([namespace, feature]) => `${namespace} :: ${feature}`),
        why: whyNot(data, support, lacking),
      })),
    };
  }

  // --- Reasons (pep_variants.choose.phrases and explanation)

  function listed(values, word) {
    const shown = values.slice(0, MOST_VALUES);
    if (values.length > MOST_VALUES) return `${shown.join(", ")}, … (${values.length} values)`;
    if (shown.length < 2) return shown.join("");
    return `${shown.slice(0, -1).join(", ")} ${word} ${shown[shown.length - 1]}`;
  }

  function whyChosen(data, release, places, needs) {
    const phrases = [];
    for (const namespace of unique([...release.namespaces, data.abi])) {
      const own = needs.filter((item) => item[0] === namespace);
      const found = own.map((item) => ({ item, values: kept(places, item) }));
      const best = ({ item, values }) => places.get(item[0]).get(item[1]).get(values[0]);
      found.sort((a, b) => best(a) - best(b));
      for (const { item, values } of found) {
        phrases.push(
          namespace === data.abi
            ? `built against ${item[1]} ${listed(values, "or")}`
            : item[5][item[2].indexOf(values[0])],
        );
      }
    }
    return phrases.filter(Boolean).join(", "); // what is no demand has no phrase
  }

  function whyNot(data, support, lacking) {
    const phrases = [];
    const ordered = [...lacking].sort((a, b) => byText(a[0], b[0]) || byText(a[1], b[1]));
    for (const namespace of unique(ordered.map((item) => item[0]))) {
      const own = ordered.filter((item) => item[0] === namespace);
      const { features, notice } = support.get(namespace);
      if (features.size) {
        for (const item of own) phrases.push(whyLacking(data, features, item));
        continue;
      }
      const needed = own.map((item) => item[3]).join(" and ");
      if (namespace === data.abi) {
        phrases.push(needed + data.phrases.unresolved);
        continue;
      }
      const short =
        notice.length > NOTICE_LENGTH ? `${notice.slice(0, NOTICE_LENGTH - 1)}…` : notice;
      const nothing = data.phrases.nothing.replace("{}", () => namespace);
      phrases.push(needed + nothing + (short ? ` (${short})` : ""));
    }
    return phrases;
  }

  function whyLacking(data, features, [namespace, feature, , needs, lacks]) {
    const values = features.get(feature) || [];
    if (!values.length) return lacks;
    const special = data.phrases.has.find((item) => item[0] === namespace && item[1] === feature);
    if (!special) return `${needs}, this machine has ${listed(values, "and")}`;
    const names = new Map(special[4]);
    const shown = values.map((value) => names.get(value) || value);
    return `${needs}, ${special[2].replace("{}", () => (special[3] ? listed(shown, "and") : shown[0]))}`;
  }

  // --- Files (pep_variants.choose.selection)

  // Places of the files that may be installed, best first; `target` null takes those of all.
  function select(data, release, machine, target) {
    const ranking = release.variants ? rank(data, release, machine, target || 0) : null;
    const order = new Map();
    for (const { label, needs } of ranking ? ranking.fitting : []) {
      if (needs.length) order.set(label, order.size);
    }
    const known = new Set((release.variants || []).map(([label]) => label));
    const last = order.size;
    const yanked = new Set(release.yanked || []);
    const all = [];
    release.files.forEach(([row, kind, ...build], place) => {
      const label = release.labels[row];
      let rankOf = label === null ? last + 1 : order.get(label);
      if (label === "null" && ranking) rankOf = last;
      const fit = kind < 0 ? Infinity : target === null ? 0 : data.kinds[kind][target];
      if (rankOf === undefined || fit < 0) return;
      all.push({ place, label, rankOf, fit, build });
    });
    // Yanked files are for those who ask for this very version (PEP 592).
    const allowed = all.filter(({ place }) => !yanked.has(place));
    const files = allowed.length ? allowed : all;
    files.sort(
      (a, b) => a.rankOf - b.rankOf || compared([a.fit], [b.fit]) || compared(b.build, a.build),
    );
    return { ranking, files, unknown: release.labels.filter((x) => x !== null && !known.has(x)) };
  }

  return { machineOf, rank, readPlatform, select };
})();
