// The timeline of one program: a lane a unit, one for the graph's tensors, down to the instruction.

(() => {
  const AROUND = 7; // instructions listed on either side of the chosen one
  const LEFT = 84; // pixels of the lanes' names
  const LEAST = 24; // cycles of the closest zoom
  const canvas = byId("chart");
  const lanes = ["tensor", ...DATA.units];
  let program;
  let chosen;
  let from;
  let to;

  function show(index) {
    program = DATA.programs[index];
    tensorTable();
    [from, to] = [0, program.cycles];
    choose(0);
  }

  const count = () => program.texts.length;
  const end = (index) => program.starts[index] + program.cyclesOf[index];
  // [origin, cycles] of every tensor of an instruction: several where a transfer moves them together.
  const parts = (index) => program.partsOf[index] || [[program.originOf[index], program.cyclesOf[index]]];
  const tensors = (index) => parts(index).filter(([origin]) => origin !== null).map(([origin]) => program.origins[origin]);

  // The instruction that is under way at a cycle.
  function at(cycle) {
    let low = 0;
    let high = count() - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (program.starts[middle] <= cycle) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  function choose(index) {
    chosen = clamp(index, 0, count() - 1);
    const width = to - from;
    if (program.starts[chosen] < from || end(chosen) > to) {
      view(program.starts[chosen] + program.cyclesOf[chosen] / 2 - width / 2, width);
    }
    describe();
    list();
    draw();
  }

  function view(start, width) {
    const size = clamp(width, Math.min(LEAST, program.cycles), program.cycles);
    from = clamp(start, 0, program.cycles - size);
    to = from + size;
  }

  function zoom(factor, centre) {
    const middle = centre === undefined ? program.starts[chosen] + program.cyclesOf[chosen] / 2 : centre;
    const share = clamp((middle - from) / (to - from), 0, 1);
    const width = clamp((to - from) * factor, Math.min(LEAST, program.cycles), program.cycles);
    view(middle - share * width, width);
    draw();
  }

  // The first instruction of the next run of instructions of another tensor, or of the one before.
  function otherTensor(step) {
    const origin = (index) => program.originOf[index];
    let index = chosen;
    if (step < 0) {
      while (index > 0 && origin(index - 1) === origin(chosen)) index -= 1;
      if (index === 0 || index !== chosen) return index;
      index -= 1;
      while (index > 0 && origin(index - 1) === origin(index)) index -= 1;
      return index;
    }
    while (index < count() - 1 && origin(index) === origin(chosen)) index += 1;
    return index;
  }

  function describe() {
    const found = tensors(chosen);
    const unit = DATA.units[program.units[chosen]];
    const phases = program.phases[chosen].map(([phase, cycles]) => [DATA.phases[phase], commas(cycles)]);
    byId("instruction").replaceChildren(
      make("h3", {}, `Instruction ${chosen} (0 .. ${commas(count() - 1)})`),
      make("p", { class: "code" }, program.texts[chosen]),
      facts([["unit", unit], ["cycles", commas(program.cyclesOf[chosen])],
        ["from cycle", commas(program.starts[chosen])], ...phases]),
      ...(found.length ? found : [null]).map((origin) => make("p", {}, origin ? "Graph tensor " : "Of no graph tensor.",
        ...(origin ? [make("strong", {}, origin[0]), make("br", {}), make("span", { class: "code" }, origin[1])] : []))));
  }

  const link = (words, index) => {
    const button = make("button", { type: "button", class: "link" }, words);
    button.addEventListener("click", () => choose(index));
    return button;
  };

  function list() {
    const first = clamp(chosen - AROUND, 0, Math.max(0, count() - 2 * AROUND - 1));
    const rows = [];
    for (let i = first; i < Math.min(count(), first + 2 * AROUND + 1); i += 1) {
      const found = tensors(i);
      rows.push(make("tr", i === chosen ? { "aria-current": "true" } : {},
        make("td", { class: "number" }, String(i)),
        make("td", {}, link(program.texts[i], i)),
        make("td", { class: "code" }, found.length > 1 ? `${found[0][0]} and ${found.length - 1} more` : found.length ? found[0][0] : ""),
        make("td", { class: "number" }, commas(program.starts[i])),
        make("td", { class: "number" }, commas(program.cyclesOf[i]))));
    }
    const held = byId("instructions").contains(document.activeElement);
    byId("instructions").replaceChildren(...rows);
    if (held) byId("instructions").querySelector('[aria-current="true"] button').focus();
  }

  // One row a tensor, those with the most cycles first; its name leads to its first instruction.
  function tensorTable() {
    const found = new Map();
    for (let i = 0; i < count(); i += 1) {
      for (const [index, cycles] of parts(i)) {
        if (index === null) continue;
        const [name, graph] = program.origins[index];
        const entry = found.get(name) || { graph, first: i, instructions: 0, cycles: 0 };
        entry.instructions += 1;
        entry.cycles += cycles;
        found.set(name, entry);
      }
    }
    const rows = [...found].sort((a, b) => b[1].cycles - a[1].cycles || a[1].first - b[1].first).map(([name, entry]) =>
      make("tr", {},
        make("td", {}, link(name, entry.first)),
        make("td", { class: "code" }, entry.graph),
        make("td", { class: "number" }, commas(entry.instructions)),
        make("td", { class: "number" }, commas(entry.cycles)),
        make("td", { class: "number" }, `${((100 * entry.cycles) / program.cycles).toFixed(1)} %`)));
    byId("tensors").replaceChildren(...rows);
  }

  function draw() {
    const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
    const { width, height } = canvas.getBoundingClientRect();
    const scale = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.clearRect(0, 0, width, height);
    const lane = (height - 30) / lanes.length;
    const x = (cycle) => LEFT + ((cycle - from) / (to - from)) * (width - LEFT - 8);
    const ink = colour("ink");
    pen.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    pen.textBaseline = "middle";
    lanes.forEach((name, row) => {
      pen.fillStyle = ink;
      pen.fillText(name, 8, row * lane + lane / 2 + 4);
      pen.fillStyle = colour("rule");
      pen.fillRect(LEFT, row * lane + lane + 3, width - LEFT - 8, 1);
    });
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, width - LEFT - 8, height);
    pen.clip();
    const span = (row, start, stop, fill, words) => {
      const left = x(start);
      const size = Math.max(x(stop) - left, 0.6);
      pen.fillStyle = fill;
      pen.fillRect(left, row * lane + 6, size, lane - 6);
      if (size > 4) {
        pen.strokeStyle = colour("paper");
        pen.strokeRect(left, row * lane + 6, size, lane - 6);
      }
      const seen = Math.max(left, LEFT);
      if (words && left + size - seen > pen.measureText(words).width + 8) {
        pen.fillStyle = row === 0 ? ink : "#000000";
        pen.fillText(words, seen + 4, row * lane + lane / 2 + 3);
      }
    };
    const last = at(to);
    for (let i = at(from); i <= last; i += 1) {
      const origin = program.originOf[i];
      if (i === at(from) || origin !== program.originOf[i - 1]) {
        let stop = i;
        while (stop + 1 < count() && program.originOf[stop + 1] === origin) stop += 1;
        let start = i;
        while (start > 0 && program.originOf[start - 1] === origin) start -= 1;
        if (origin !== null && !program.partsOf[start]) {
          span(0, program.starts[start], end(stop), colour(origin % 2 ? "rule" : "unreached"), program.origins[origin][0]);
        }
      }
      let now = program.starts[i];
      for (const [index, cycles] of program.partsOf[i] || []) {
        span(0, now, now + cycles, colour(index % 2 ? "rule" : "unreached"), program.origins[index][0]);
        now += cycles;
      }
      now = program.starts[i];
      for (const [phase, cycles] of program.phases[i]) {
        const fetch = DATA.phases[phase] === "fetch";
        const unit = fetch ? DATA.units.indexOf("control") : program.units[i];
        span(1 + unit, now, now + cycles, colour(DATA.units[unit]), DATA.phases[phase]);
        now += cycles;
      }
    }
    pen.strokeStyle = colour("chosen");
    pen.lineWidth = 2;
    const left = x(program.starts[chosen]);
    pen.strokeRect(left - 1, 3, Math.max(x(end(chosen)) - left, 2) + 2, lane * lanes.length + 2);
    pen.restore();
    pen.fillStyle = ink;
    pen.textBaseline = "alphabetic";
    const ticks = width < 640 ? 1 : 4;
    for (let tick = 0; tick <= ticks; tick += 1) {
      const cycle = from + ((to - from) * tick) / ticks;
      pen.textAlign = tick === 0 ? "left" : tick === ticks ? "right" : "center";
      pen.fillText(commas(Math.round(cycle)) + (tick === ticks ? " cycles" : ""), x(cycle), height - 8);
    }
    pen.textAlign = "left";
    canvas.setAttribute("aria-label", `Timeline of the units, cycles ${commas(Math.round(from))} to ${commas(Math.round(to))} of ${commas(program.cycles)}`);
  }

  const cycleAt = (event) => {
    const box = canvas.getBoundingClientRect();
    return from + ((event.clientX - box.left - LEFT) / (box.width - LEFT - 8)) * (to - from);
  };
  canvas.addEventListener("click", (event) => choose(at(clamp(cycleAt(event), 0, program.cycles - 1))));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return; // a page with a wheel scrolls
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, cycleAt(event));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const moves = {
      ArrowLeft: () => choose(chosen - 1), ArrowRight: () => choose(chosen + 1),
      ArrowUp: () => choose(otherTensor(-1)), ArrowDown: () => choose(otherTensor(1)),
      Home: () => choose(0), End: () => choose(count() - 1),
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2),
    };
    if (!(event.key in moves) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    moves[event.key]();
  });
  byId("zoom-in").addEventListener("click", () => zoom(0.5));
  byId("zoom-out").addEventListener("click", () => zoom(2));
  byId("zoom-all").addEventListener("click", () => zoom(Infinity));
  openViewer("timeline", byId("program"), DATA.programs, show);
  if (program) {
    window.addEventListener("resize", draw);
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  }
})();
