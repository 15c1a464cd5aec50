// The block viewer: a run's text, its blocks one after the other, and the chosen block in full.

(() => {
  const VERDICTS = {
    accepted: ["✓", "draft accepted"],
    rejected: ["✗", "draft rejected"],
    unreached: ["·", "draft behind a rejected one"],
    recovered: ["↺", "recovered: the target's own"],
    bonus: ["*", "bonus: the target's own"],
    plain: ["=", "plain: the target's own"],
  };
  const text = byId("text");
  let run;
  let chosen;

  // Space and line ends would not be seen.
  const visible = (token) =>
    token === null ? "?" : token.replace(/\n/g, "⏎").replace(/ /g, "␣").replace(/\t/g, "⇥") || "∅";

  const shown = (token, verdict) =>
    make("span", { class: `token ${verdict}`, "data-sign": VERDICTS[verdict][0] }, visible(token));

  // The tokens of a block in reading order: accepted guesses, dropped ones, the target's own.
  function tokens(block) {
    return block.verdicts.map((verdict, place) => {
      const own = place === block.guesses.length;
      const accepted = block.verdicts.filter((each) => each === "accepted").length;
      return [own ? block.choices[accepted] : block.guesses[place], verdict];
    });
  }

  function label(block, index) {
    const words = tokens(block).map(([token, verdict]) => `${visible(token)} ${verdict}`);
    return `block ${index}: ${words.join(", ")}`;
  }

  function show(index) {
    run = DATA.runs[index];
    text.replaceChildren(make("span", { class: "prompt" }, run.prompt));
    run.blocks.forEach((block, place) => {
      const option = make("span", {
        class: "block", role: "option", id: `block-${place}`, "aria-selected": "false",
        "aria-label": label(block, place),
      });
      for (const [token, verdict] of tokens(block)) {
        option.append(shown(token, verdict));
        if (token === "\n" && !["rejected", "unreached"].includes(verdict)) option.append("\n");
      }
      option.addEventListener("click", () => choose(place));
      text.append(option);
    });
    chosen = undefined;
    if (run.blocks.length) choose(0);
    else byId("block").replaceChildren();
  }

  function choose(place) {
    const next = clamp(place, 0, run.blocks.length - 1);
    if (chosen !== undefined) byId(`block-${chosen}`).setAttribute("aria-selected", "false");
    chosen = next;
    const option = byId(`block-${chosen}`);
    option.setAttribute("aria-selected", "true");
    text.setAttribute("aria-activedescendant", option.id);
    const box = text.getBoundingClientRect();
    const found = option.getBoundingClientRect();
    if (found.top < box.top) text.scrollTop -= box.top - found.top + 8;
    if (found.bottom > box.bottom) text.scrollTop += found.bottom - box.bottom + 8;
    describe(run.blocks[chosen]);
  }

  function describe(block) {
    const cycles = block.programs.reduce((sum, program) => sum + program[3], 0);
    const emitted = block.verdicts.filter((v) => v === "accepted").length + 1;
    const rows = block.verdicts.map((verdict, place) =>
      make("tr", {},
        make("td", { class: "number" }, String(place + 1)),
        make("td", { class: "code" }, place < block.guesses.length ? visible(block.guesses[place]) : "–"),
        make("td", { class: "code" }, place < block.choices.length ? visible(block.choices[place]) : "–"),
        make("td", {}, make("span", { class: `token ${verdict}`, "data-sign": VERDICTS[verdict][0] }, " "), ` ${verdict}`)));
    const programs = block.programs.map(([role, count, cache, cost]) =>
      make("tr", {},
        make("td", {}, role),
        make("td", { class: "number" }, String(count)),
        make("td", { class: "number" }, String(cache)),
        make("td", { class: "number" }, commas(cost)),
        make("td", { class: "number" }, `${((100 * cost) / cycles).toFixed(1)} %`)));
    byId("block").replaceChildren(
      make("h3", {}, `Block ${chosen} (0 .. ${run.blocks.length - 1})`),
      facts([["tokens emitted", String(emitted)], ["cycles", commas(cycles)],
        ["cycles a token", commas(Math.round(cycles / emitted))]]),
      table("Tokens", ["", "guess", "target's choice", "what became of it"], rows, [0]),
      table("Programs", ["role", "rows", "cache", "cycles", "share"], programs, [1, 2, 3, 4]));
  }

  function table(caption, names, rows, numbers) {
    const heads = names.map((name, column) =>
      make("th", numbers.includes(column) ? { scope: "col", class: "number" } : { scope: "col" }, name));
    return make("table", {}, make("caption", {}, caption), make("thead", {}, make("tr", {}, ...heads)),
      make("tbody", {}, ...rows));
  }

  text.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: chosen - 1, ArrowUp: chosen - 1, ArrowRight: chosen + 1,
      ArrowDown: chosen + 1, Home: 0, End: Infinity };
    if (!(event.key in moves) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    if (run.blocks.length) choose(moves[event.key]);
  });
  byId("block-previous").addEventListener("click", () => run.blocks.length && choose(chosen - 1));
  byId("block-next").addEventListener("click", () => run.blocks.length && choose(chosen + 1));
  byId("show-guesses").addEventListener("change", (event) =>
    text.classList.toggle("hide-guesses", !event.target.checked));
  for (const [verdict, [sign, words]] of Object.entries(VERDICTS)) {
    byId("verdict-legend").append(
      make("li", {}, make("span", { class: `token ${verdict}`, "data-sign": sign }, "a"), ` ${words}`));
  }
  openViewer("blocks", byId("run"), DATA.runs, show);
})();
