"use strict";
/* The form of the selector. All that it says stands in selector-answers.js, which the site's build
   writes; here is no rule about builds, only the looking up. */
(() => {
  const form = document.getElementById("selector");
  if (!form) return;
  const input = document.getElementById("selector-gpu");
  const list = document.getElementById("selector-gpus");
  const driver = form.elements.driver;
  const answer = document.getElementById("selector-answer");
  const fields = ["project", "system", "gpu", "driver", "python", "installer"];
  const part = (name) => answer.querySelector(`[data-part="${name}"]`);
  let data = null;
  let gpu = null;
  let unknown = [];
  let shown = [];
  let marked = -1;

  const say = (text) => {
    document.getElementById("selector-said").textContent = text;
  };
  const show = (element, text) => {
    element.hidden = !text;
    element.textContent = text || "";
  };
  const make = (name, text, more = {}) =>
    Object.assign(document.createElement(name), { textContent: text }, more);

  // GPUs: the names in which most of the typed words are found, and each that has a number.
  const squeeze = (text) => text.toLowerCase().replace(/[^a-z0-9]/g, "");
  const system = () => form.elements.system.value;
  const gpusHere = () => data.gpus.filter((each) => system() in each.systems);
  function found(typed) {
    const words = typed.split(/\s+/).map(squeeze).filter(Boolean);
    const numbers = words.filter((word) => /\d/.test(word));
    const ranked = gpusHere().map((gpu) => {
      const text = squeeze([gpu.title, gpu.id, gpu.systems[system()]].join(" "));
      const own = gpu.title.split(/\s+/).map(squeeze);
      const hits = words.filter((word) => text.includes(word));
      const fits = numbers.every((word) => hits.includes(word));
      return { gpu, count: fits ? hits.length : 0, whole: words.filter((word) => own.includes(word)).length };
    });
    const most = Math.max(...ranked.map(({ count }) => count), words.length ? 1 : 0);
    const best = ranked.filter(({ count }) => count === most);
    return best.sort((one, other) => other.whole - one.whole).map(({ gpu }) => gpu);
  }

  function mark(number) {
    const options = [...list.children];
    marked = Math.min(number, options.length - 1);
    options.forEach((option, at) => option.setAttribute("aria-selected", String(at === marked)));
    if (marked < 0) {
      input.removeAttribute("aria-activedescendant");
    } else {
      input.setAttribute("aria-activedescendant", options[marked].id);
      options[marked].scrollIntoView({ block: "nearest" });
    }
  }

  function open(typed) {
    shown = found(typed);
    list.replaceChildren(
      ...shown.map((each) => {
        const option = make("li", each.title, { id: `selector-gpu-${each.id}` });
        option.setAttribute("role", "option");
        option.addEventListener("mousedown", (event) => event.preventDefault());
        option.addEventListener("click", () => choose(each));
        return option;
      }),
    );
    list.hidden = shown.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
    document.getElementById("selector-gpu-unknown").hidden = shown.length > 0;
    say(shown.length ? `${shown.length} GPUs` : "This GPU is not in the list");
    mark(typed ? 0 : shown.indexOf(gpu));
  }

  function close() {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function choose(each) {
    gpu = each;
    input.value = each ? each.title : "";
    document.getElementById("selector-gpu-unknown").hidden = true;
    close();
    changed();
  }

  // Drivers: those that this GPU can have.
  function offerDrivers(wanted) {
    const has = gpu?.drivers[system()];
    const kind = data.drivers[has?.kind];
    const ids = has ? has.ids : [];
    driver.replaceChildren(...ids.map((id) => make("option", kind.titles[id], { value: id })));
    driver.value = ids.includes(wanted) ? wanted : "";
    form.querySelector("[data-field=driver]").hidden = !has;
    const how = kind?.seen_by[system()];
    show(document.getElementById("selector-see"), how);
    document.getElementById("selector-see").parentElement.hidden = !how;
    show(document.getElementById("selector-driver-unknown"), driver.value ? "" : kind?.unknown);
    return ids.includes(wanted);
  }

  // Commands are broken between words only.
  const write = (element, line) =>
    element.replaceChildren(
      ...line.split(/(\s+)/).map((word) => (word.trim() ? make("span", word) : word)),
    );

  function fact({ text, measured, page, date }) {
    const source = make("small", measured ? ` measured: ${measured}, ` : " not measured: ");
    if (page?.startsWith("https://")) source.append(make("a", "its page", { href: page }));
    source.append(date ? `, ${date}` : "");
    const item = make("li", text);
    item.append(source);
    return item;
  }

  function present(found) {
    const installer = form.elements.installer.value;
    show(part("title"), found.title);
    for (const name of ["why", "not_newer", "warning", "again"]) show(part(name), found[name]);
    part("again").parentElement.hidden = !found.again;
    const project = data.projects.find(({ id }) => id === form.elements.project.value);
    const ours = found.chosen || found.ask ? project : {};
    const lines = { with: [ours.with, ours.with_why], without: [found.without, found.without_why] };
    for (const [way, [texts, reasons]] of Object.entries(lines)) {
      const line = texts?.[installer];
      const reason = reasons?.[installer];
      write(part(way), line || "");
      part(way).parentElement.hidden = !line;
      show(part(`${way}_why`), !line && reason && `There is no such line: ${reason}.`);
      answer.querySelector(`[data-block=${way}]`).hidden = !line && !reason;
    }
    write(part("check"), found.check || "");
    part("check").closest("div[data-block]").hidden = !found.check;
    part("supposed").hidden = !found.supposed;
    show(part("expect"), found.expect && `It prints: ${found.expect}`);
    part("facts").replaceChildren(...(found.facts || []).map((number) => fact(data.facts[number])));
    part("facts").parentElement.hidden = !found.facts?.length;
  }

  function look() {
    const notes = unknown.map(([name, value]) => `The link says ${name} ‘${value}’, which is not known here.`);
    show(document.getElementById("selector-note"), notes.join(" "));
    answer.hidden = true;
    show(document.getElementById("selector-none"), gpu ? "" : "Choose the GPU: the line to copy is here then.");
    if (!gpu) return;
    const machine = data.machines[system()].indexOf(`${gpu.systems[system()]}/${driver.value}`);
    const row = data.rows[data.choices[form.elements.project.value][system()][machine]];
    const told = data.answers[row[data.pythons.indexOf(form.elements.python.value)]];
    present(told);
    answer.hidden = false;
    say(told.title);
  }

  function changed() {
    if (gpu && !gpusHere().includes(gpu)) gpu = null;
    if (gpusHere().length === 1) [gpu] = gpusHere();
    input.value = gpu ? gpu.title : "";
    offerDrivers(driver.value);
    unknown = [];
    const query = new URLSearchParams(
      fields.map((name) => [name, name === "gpu" ? gpu?.id || "" : form.elements[name].value]),
    );
    history.replaceState(null, "", `?${query}${location.hash}`);
    look();
  }

  // The choices that a link gives; what it does not give, or what is not known, stays as it is.
  function restore(query) {
    const guess = navigator.userAgentData?.platform || navigator.platform || "";
    const machine = /mac/i.test(guess) ? "macos" : /win/i.test(guess) ? "windows" : "linux";
    form.elements.system.value = machine;
    for (const name of fields) {
      const value = query.get(name);
      if (value === null || (value === "" && name !== "driver")) continue;
      if (name === "gpu") {
        gpu = gpusHere().find(({ id }) => id === value) || null;
        input.value = gpu ? gpu.title : "";
        if (!gpu) unknown.push([name, value]);
      } else if (name === "driver") {
        if (gpu && !offerDrivers(value) && value) unknown.push([name, value]);
      } else {
        const field = form.elements[name];
        const options = [...(field.options || field)].map((each) => each.value);
        if (options.includes(value)) field.value = value;
        else unknown.push([name, value]);
      }
    }
    if (!gpu && gpusHere().length === 1) [gpu] = gpusHere();
    input.value = gpu ? gpu.title : "";
    offerDrivers(driver.value);
  }

  function ready() {
    data = globalThis.selectorAnswers;
    restore(new URLSearchParams(location.search));
    input.disabled = false;
    input.addEventListener("input", () => open(input.value));
    input.addEventListener("click", () => open(""));
    input.addEventListener("focus", () => input.select());
    input.addEventListener("blur", () => {
      close();
      if (document.getElementById("selector-gpu-unknown").hidden) input.value = gpu ? gpu.title : "";
    });
    input.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) {
        if (list.hidden) open("");
        else mark((marked + step + shown.length) % shown.length);
      } else if (["Enter", "Tab"].includes(event.key)) {
        if (!list.hidden && marked >= 0) choose(shown[marked]);
        if (event.key === "Tab") return;
      } else if (event.key === "Escape") {
        close();
      } else return;
      event.preventDefault();
    });
    form.addEventListener("change", (event) => event.target !== input && changed());
    form.addEventListener("submit", (event) => event.preventDefault());
    const copy = new ClipboardJS(".selector-copy", {
      text: (button) =>
        button.dataset.copies ? part(button.dataset.copies).textContent : location.href,
    });
    const tell = (button, text) => {
      say(text);
      button.dataset.was ??= button.textContent;
      button.textContent = text;
      setTimeout(() => (button.textContent = button.dataset.was), 2000);
    };
    copy.on("success", ({ trigger }) => tell(trigger, "Copied"));
    copy.on("error", ({ trigger }) => tell(trigger, "Press Ctrl+C"));
    look();
  }

  const script = document.createElement("script");
  script.src = form.dataset.answers;
  script.addEventListener("load", ready);
  script.addEventListener("error", () =>
    show(document.getElementById("selector-note"), "The answers could not be loaded; the tables below have them."),
  );
  document.head.append(script);
  form.hidden = false;
})();
