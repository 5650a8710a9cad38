// The live page. What is stored of one sentence is shown at once; when the model is loaded, a worker answers for every other one.

// What the worker does. It is made of its own source and of the two classes', so that it starts on a page from a disk, too.
function work(most) {
  const cosine = (a, b) => a.reduce((sum, x, c) => sum + x * b[c], 0) / Math.hypot(...a) / Math.hypot(...b);
  const untrained = new Map();
  let encoder, tokenizer;

  // [CLS] first [SEP], or [CLS] first [SEP] second [SEP], cut to as many tokens as fit; for each its id, text and word (0 of special tokens).
  function encode(texts, opening) {
    const sides = texts.map((text) => tokenizer.words(text).flatMap((ids, word) => ids.map((id) => ({ id, word }))));
    const length = () => sides.reduce((sum, side) => sum + side.length + 1, opening ? 1 : 0), whole = length();
    while (length() > most) sides.reduce((a, b) => (b.length > a.length ? b : a)).pop();
    const row = opening ? [{ id: tokenizer.ids.get(opening), segment: 0, word: 0 }] : [];
    let before = 0;
    sides.forEach((side, segment) => {
      row.push(...side.map(({ id, word }) => ({ id, segment, word: before + word + 1 })), { id: tokenizer.ids.get(encoder.frame[1]), segment, word: 0 });
      before += side.length;
    });
    return { row, cut: whole - length() };
  }

  function answer({ inputs, opening, start, seed, off }) {
    if (seed !== null && !untrained.has(seed)) untrained.clear(), untrained.set(seed, encoder.untrained(seed));
    const parameters = seed === null ? encoder.trained : untrained.get(seed);
    const began = performance.now();
    const results = inputs.map((texts) => {
      const { row, cut } = encode(texts, opening ?? encoder.frame[0]);
      const ids = row.map(({ id }) => id), run = (heads) => encoder.forward(ids, row.map(({ segment }) => segment), { start, parameters, off: heads });
      const edited = run(new Set(off)), whole = off.length ? run(new Set()) : edited, moved = [];
      const head = (i) => Math.floor(i / ids.length ** 2);
      edited.maps.forEach((a, i) => (moved[head(i)] = Math.max(moved[head(i)] ?? 0, Math.abs(a - whole.maps[i]))));
      return { tokens: ids.map((id) => tokenizer.names.get(id)), ids, words: row.map(({ word }) => word), cut, moved, ...edited, whole: whole.vector };
    });
    const pair = results.length === 2 && { whole: cosine(results[0].whole, results[1].whole), edited: cosine(results[0].vector, results[1].vector) };
    return { results: results.map((one) => ({ ...one, cosine: cosine(one.vector, one.whole) })), pair, ms: performance.now() - began };
  }

  onmessage = ({ data: { bytes, task } }) => {
    if (bytes) tokenizer = new WordPiece((encoder = new Encoder(bytes)).tokenizer);
    postMessage(bytes ? {} : answer(task));
  };
}

// The bytes of the model: on a server those of the file, which the browser keeps; from a disk those of the string that the script hands over.
async function modelBytes(file, size, progress) {
  if (location.protocol === "file:") {
    const script = Object.assign(document.createElement("script"), { src: file, charset: "x-user-defined" }); // a byte b becomes b or 0xF700 + b
    const text = await new Promise((resolve, reject) => {
      Object.assign(window, { liveModel: resolve });
      script.onerror = () => reject(new Error(`${file} cannot be read`));
      document.head.append(script);
    });
    script.remove();
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
    return bytes;
  }
  const kept = window.caches && (await caches.open("live-page"));
  let response = await kept?.match(file);
  if (!response) {
    response = await fetch(file);
    if (!response.ok) throw new Error(`${file}: ${response.status}`);
    await kept?.delete(file, { ignoreSearch: true }); // that of an older book
    kept?.put(file, response.clone()).catch(() => {}); // no room: asked for again next time
  }
  const bytes = new Uint8Array(size), reader = response.body.getReader();
  let end = 0;
  for (let part; !(part = await reader.read()).done; end += part.value.length) bytes.set(part.value, end), progress(end / size);
  const returns = { 110: 10, 114: 13 }; // \n, \r; a quote and a backslash stand for themselves
  let length = 0;
  for (let i = bytes.indexOf(34) + 1; bytes[i] !== 34; i++) bytes[length++] = bytes[i] === 92 ? (returns[bytes[++i]] ?? bytes[i]) : bytes[i];
  return bytes.subarray(0, length);
}

(async (root) => {
  const given = JSON.parse(root.querySelector("script").textContent), { layers, heads } = given;
  const find = (name) => root.querySelector(`.${name}`), form = root.querySelector("form"), fields = [...form.elements].filter(({ name }) => name);
  const file = `${given.base}/model.js?${given.sha256.slice(0, 8)}`, size = Math.round(given.bytes / 1e6); // MB
  const bytes = Uint8Array.from(atob(given.maps), (sign) => sign.charCodeAt(0));
  const stored = { tokens: given.tokens, words: given.words, maps: Float32Array.from(new Uint16Array(bytes.buffer), (a) => a / 65535) };
  const PLAIN = { first: given.sentence, second: "", shown: "0", seed: "", opening: "as it is", start: "0", head: layers > 2 ? "3-1" : "1-1", off: "" };
  const state = { ...PLAIN }; // all that a link holds: the form's fields, the head that is shown, and those that are off
  let waiting, answer = { results: [stored] }, asked = "", worker = null, busy = false, again = false;

  const fill = (element, attributes, parts = []) => {
    for (const key in attributes) element.setAttribute(key, attributes[key]);
    element.append(...parts);
    return element;
  };
  const make = (tag, attributes, ...parts) => fill(document.createElement(tag), attributes, parts);
  const drawn = (tag, attributes, ...parts) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, parts);
  const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}\u00a0%`;
  const number = (head) => head.split("-").reduce((layer, place) => (layer - 1) * heads + (place - 1)); // "3-1" is 2 · heads + 0
  const points = (share) => `${Math.round(100 * share)} point${share < 0.015 ? "" : "s"}`;
  const off = () => new Set(state.off.split(",").filter(Boolean)), layer = (head) => parseInt(head);
  const result = () => answer.results[state.shown] ?? answer.results[0];
  const mapOf = (head, area = result().tokens.length ** 2) => result().maps.subarray(number(head) * area, (number(head) + 1) * area);

  // The grid: a button for each head, one for each layer.
  const names = Array.from({ length: layers }, (_, l) => Array.from({ length: heads }, (_, h) => `${l + 1}-${h + 1}`));
  const tiles = new Map(names.flat().map((head) => [head, make("button", { type: "button", "data-head": head }, make("canvas"))]));
  const columns = names.map((_, l) => make("button", { type: "button", "aria-label": `Layer ${l + 1} switched off` }, `layer ${l + 1}`));
  const grid = find("grid");
  grid.style.setProperty("--layers", layers);
  grid.append(make("span"), ...columns, ...names[0].flatMap((_, h) => [make("span", {}, `${h + 1}`), ...names.map((column) => tiles.get(column[h]))]));

  // The link: what differs from the plain page.
  function read() {
    const link = new URLSearchParams(location.hash.slice(1));
    for (const key in PLAIN) state[key] = link.get(key) ?? PLAIN[key];
    if (!tiles.has(state.head)) state.head = PLAIN.head;
    state.off = [...off()].filter((head) => tiles.has(head)).join();
    for (const field of fields) {
      field.value = state[field.name];
      if (field.selectedIndex === -1) field.value = PLAIN[field.name];
    }
    changed("This link");
  }
  function changed(what = "This") {
    for (const field of fields) state[field.name] = field.value;
    form.querySelector("details").open ||= fields.some(({ name, value }) => name !== "first" && value !== PLAIN[name]);
    find("needs").textContent = `${what} needs the model: load it (${size} MB)`;
    const link = new URLSearchParams(Object.entries(state).filter(([key, value]) => value !== PLAIN[key]));
    if (`#${link}` !== (location.hash || "#")) history.replaceState(null, "", `#${link}`);
    ask();
    draw();
  }
  function toggle(wanted) {
    const now = off(), gone = wanted.every((head) => now.has(head));
    wanted.forEach((head) => now[gone ? "delete" : "add"](head));
    state.off = [...now].sort((a, b) => number(a) - number(b)).join();
    changed();
  }

  function ask() {
    const { first, second, shown, opening, seed, start } = state, two = second.trim() !== "";
    const inputs = !two ? [[first]] : shown === "joined" ? [[first, second]] : [[first], [second]];
    const off = state.off.split(",").filter(Boolean).map((head) => `${Math.floor(number(head) / heads)}-${number(head) % heads}`);
    const task = { inputs, opening: opening === PLAIN.opening ? null : opening, seed: seed === "" ? null : +seed, start: +start, off };
    if (!worker || JSON.stringify(task) === asked) return;
    again = busy;
    if (busy) return;
    busy = true;
    asked = JSON.stringify(task);
    worker.postMessage({ task });
  }
  function answered({ data }) {
    busy = false;
    if (data.results) answer = data;
    if (again || !data.results) ask();
    draw();
  }
  async function load() {
    const button = find("load"), offer = button.textContent, say = (textContent, disabled) => (Object.assign(button, { textContent, disabled }), draw());
    if (button.matches(":focus-visible")) form.elements.first.focus(); // a disabled button loses it
    say(`Loading ${size} MB …`, true);
    try {
      const bytes = await modelBytes(file, given.bytes, (share) => (button.textContent = `Loading ${Math.round(size * share)} of ${size} MB`));
      const source = [WordPiece, Encoder, work].map(String).join("\n") + `\nwork(${given.most});`;
      worker = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
      worker.onmessage = answered;
      busy = true;
      worker.postMessage({ bytes }, [bytes.buffer]);
      say("The model is loaded", true);
    } catch (error) {
      say(offer, false);
      find("note").textContent = `The model could not be loaded: ${error.message}. It belongs to the built pages (make site writes it): copy their whole folder.`;
    }
  }

  // What the book knows of a head (with its links; it is of the trained network), and how far its map is from that of the whole model.
  function about(head) {
    const known = find("known").children[number(head)]?.cloneNode(true).childNodes ?? [], far = result().moved?.[number(head)] ?? 0;
    const card = make("a", { href: `atlas.html#${given.model}/${head}` }, "Its card in the atlas."), moved = far > 0.005 ? ` Its map has moved by up to ${points(far)}.` : "";
    return [known.length && state.seed ? "Of the trained network: " : "", ...known, " ", known.length ? card : "", moved];
  }
  // What it does that heads are off, as nodes: buttons open the heads whose maps have moved most.
  function effects(gone, first, { moved, cosine }) {
    if (!gone.length) return ["Switch the head off: here it says which maps that changes."];
    const far = (head) => moved?.[number(head)] ?? 0;
    const most = [...tiles.keys()].sort((a, b) => far(b) - far(a)).slice(0, 3).filter((head) => far(head) > 0.005);
    const open = most.map((head, i) => make("button", { type: "button", "data-open": head }, i ? head : `${head} (up to ${points(far(head))})`));
    const changes = !moved ? "Load the model to see what that changes." : open.length ? "Most changed:" : "No map changes by a point.";
    return [`Switched off: ${gone.join(", ")}. ${changes} `, ...open.flatMap((button) => [button, " "]),
      `Heads of layer ${first}${first > 1 ? " and earlier" : ""} cannot change`, gone.includes(state.head) ? `; ${state.head} is drawn as it still computes it. ` : ". ",
      moved ? `The sentence's vector: cosine ${cosine.toFixed(4)} with that of the whole model.` : ""];
  }
  function paint(canvas, map, n) {
    const image = new ImageData(n, n);
    image.data.fill(255);
    map.forEach((a, i) => image.data.fill(255 - 225 * Math.sqrt(a), 4 * i, 4 * i + 3));
    Object.assign(canvas, { width: n, height: n }).getContext("2d").putImageData(image, 0, 0);
    return canvas;
  }
  function table(element, head, rows) {
    const line = (kind, cells) => make("tr", {}, ...cells.map((cell) => make(kind, {}, cell)));
    element.replaceChildren(make("thead", {}, line("th", head)), make("tbody", {}, ...rows.map((cells) => line("td", cells))));
  }

  function draw() {
    const gone = off(), { tokens, words } = result(), { pair, results } = answer, n = tokens.length;
    const others = !worker && ["first", "second", "seed", "opening", "start"].some((key) => state[key] !== PLAIN[key]);
    const first = Math.min(...[...gone].map(layer)), stale = (head) => others || busy || (!worker && layer(head) > first); // not yet as it is asked for
    for (const [head, tile] of tiles) {
      paint(tile.firstChild, mapOf(head), n);
      const chosen = head === state.head, kind = `${gone.has(head) ? "gone" : ""} ${stale(head) ? "stale" : ""}`;
      fill(tile, { "aria-label": `Head ${head}${gone.has(head) ? ", switched off" : ""}`, "aria-pressed": chosen, tabindex: chosen ? 0 : -1, class: kind });
    }
    columns.forEach((button, l) => fill(button, { "aria-pressed": names[l].every((head) => gone.has(head)) }));
    find("right").classList.toggle("stale", stale(state.head));
    find("needs").hidden = find("load").disabled || (!others && first >= layers);
    const counts = results.map((one) => one.tokens.length).join(" + "), cut = results.reduce((sum, one) => sum + one.cut, 0);
    find("note").textContent = busy ? "Computing …" : worker ? `${counts} tokens${cut ? `, ${cut} more cut off` : ""}; ${(answer.ms / 1000).toFixed(2)} s.`
      : others ? `Pale: the maps of “${given.sentence}”. Load the model to see yours.` : "";
    const similar = pair ? ` Similarity of the two sentences: ${pair.edited.toFixed(3)}${gone.size ? ` (${pair.whole.toFixed(3)} with all heads on)` : ""}.` : "";
    if (!busy) find("effect").replaceChildren(...effects([...gone], first, result()), similar);
    find("title").textContent = `Head ${state.head}`;
    find("about").replaceChildren(...about(state.head));
    find("switch").textContent = `Switch ${state.head} ${gone.has(state.head) ? "on" : "off"}`;
    find("reset").style.visibility = gone.size ? "" : "hidden";
    drawHead(tokens, words, mapOf(state.head));
  }

  // One head large: lines, map, and its numbers.
  function drawHead(tokens, words, map) {
    const n = tokens.length, at = (q, k) => map[q * n + k], short = (token) => (token.length > 14 ? `${token.slice(0, 13)}…` : token);
    const STEP = 20, LEFT = 12 + 7 * Math.max(...tokens.map((token) => short(token).length)), RIGHT = LEFT + 120, SIDE = LEFT + STEP * n;
    const y = (i) => 14 + STEP * i, text = (token, attributes) => drawn("text", attributes, short(token));
    const rows = tokens.map((_, q) => drawn("g", {}, ...tokens.flatMap((_, k) => (at(q, k) < 0.02 ? []
      : [drawn("path", { d: `M${LEFT},${y(q)}L${RIGHT},${y(k)}`, "stroke-opacity": Math.min(1, 1.5 * at(q, k)), class: words[k] ? "word" : "special" })]))));
    const left = tokens.map((token, q) => text(token, { x: LEFT - 6, y: y(q) + 4, "text-anchor": "end", role: "option", tabindex: q ? -1 : 0 }));
    const right = tokens.map((token, k) => text(token, { x: RIGHT + 6, y: y(k) + 4, "aria-hidden": true }));
    const lines = drawn("svg", { viewBox: `0 0 ${LEFT + RIGHT} ${y(n)}`, style: `max-width: ${1.2 * (LEFT + RIGHT)}px` }, ...rows,
      drawn("g", { role: "listbox", "aria-label": `Tokens, and where head ${state.head} looks from each` }, ...left), ...right);
    const frame = drawn("rect", { x: LEFT, width: STEP * n, height: STEP, class: "frame" });
    const matrix = drawn("svg", { viewBox: `0 0 ${SIDE + 24} ${SIDE}`, style: `max-width: ${1.2 * SIDE}px`, role: "img", "aria-label": `The map of head ${state.head}` },
      drawn("image", { href: paint(make("canvas"), map, n).toDataURL(), x: LEFT, y: LEFT, width: STEP * n, height: STEP * n }), frame,
      ...tokens.flatMap((token, i) => [text(token, { x: LEFT - 4, y: LEFT + y(i), "text-anchor": "end" }),
        text(token, { transform: `translate(${LEFT + y(i)},${LEFT - 4}) rotate(-65)` })]));
    find("lines").replaceChildren(lines);
    find("matrix").replaceChildren(matrix);

    const received = (k) => tokens.reduce((sum, _, q) => sum + at(q, k) / n, 0);
    function point(q, k) {
      rows.forEach((row, i) => row.classList.toggle("faint", q !== null && i !== q));
      left.forEach((token, i) => token.setAttribute("aria-selected", i === q));
      fill(frame, { y: LEFT + STEP * q, visibility: q === null ? "hidden" : "visible" });
      const most = [...tokens.keys()].sort((a, b) => at(q, b) - at(q, a)).slice(0, 4).map((key) => `${tokens[key]} ${percent(at(q, key))}`);
      const cell = k === undefined ? "" : `“${tokens[q]}” to “${tokens[k]}”: ${at(q, k).toFixed(3)}. `;
      find("says").textContent = q === null ? "Point at a token on the left, or go through them with the arrow keys, to read its numbers."
        : `${cell}“${tokens[q]}” gives ${most.join(", ")}; it receives ${percent(received(q))} of all attention.`;
    }
    left.forEach((token, q) => {
      for (const kind of ["pointerenter", "focus"]) token.addEventListener(kind, () => point(q));
      token.addEventListener("keydown", (event) => {
        const next = left[q + { ArrowUp: -1, ArrowDown: 1 }[event.key]];
        if (next) event.preventDefault(), next.focus();
      });
    });
    matrix.addEventListener("pointermove", ({ clientX, clientY }) => {
      const { left, top, width } = matrix.getBoundingClientRect(), cell = (pixels) => Math.floor(((pixels / width) * (SIDE + 24) - LEFT) / STEP);
      const q = cell(clientY - top), k = cell(clientX - left);
      if (q >= 0 && k >= 0 && q < n && k < n) point(q, k);
    });
    for (const svg of [lines, matrix]) svg.addEventListener("pointerleave", ({ pointerType }) => pointerType === "mouse" && point(null));
    point(null);

    const entropy = map.reduce((sum, a) => sum - (a && a * Math.log(a)), 0) / n;
    table(find("measures"), ["", `head ${state.head}`, "if all were even"], [
      [`${tokens[0]} receives`, percent(received(0)), percent(1 / n)], ["entropy of a row", `${entropy.toFixed(2)} nats`, `${Math.log(n).toFixed(2)} nats`]]);
    const pieces = [...new Set(words)].filter(Boolean).map((word) => [...words.keys()].filter((i) => words[i] === word));
    const spelled = pieces.map((own) => own.map((i) => tokens[i].replace(/^##/, "")).join(""));
    const share = (a, b) => pieces[a].reduce((sum, q) => sum + pieces[b].reduce((part, k) => part + at(q, k), 0), 0) / pieces[a].length;
    table(find("answers"), ["word", "looks most at the word", "with", "the word before"], pieces.length < 2 ? [] : pieces.map((_, a) => {
      const best = [...pieces.keys()].filter((b) => b !== a).reduce((c, b) => (share(a, b) > share(a, c) ? b : c));
      const cell = (text) => make("span", { class: share(a, best) < pieces[best].length / n ? "little" : "" }, text); // less than an even share
      return [spelled[a], cell(spelled[best]), cell(percent(share(a, best))), spelled[a - 1] ?? "–"];
    }));
  }

  const on = (element, kinds, act) => kinds.split(" ").forEach((kind) => element.addEventListener(kind, act));
  columns.forEach((button, l) => on(button, "click", () => toggle(names[l])));
  const show = (head) => head !== state.head && ((state.head = head), changed());
  on(grid, "click pointerover focusin", ({ type, target, detail }) => {
    const head = target.closest("[data-head]")?.dataset.head;
    if (!head) return;
    find("pointed").replaceChildren(`${head}: `, ...about(head));
    if (type !== "pointerover") show(head);
    if (type === "click" && detail && find("up").offsetParent) find("right").scrollIntoView(); // where it lies below the maps
  });
  on(find("up"), "click", () => find("left").scrollIntoView());
  on(find("effect"), "click", ({ target: { dataset: { open } } }) => {
    if (open) show(open), find("effect").querySelector(`[data-open="${open}"]`).focus(); // drawn anew
  });
  on(grid, "keydown", (event) => {
    const head = event.target.dataset.head, step = head && { ArrowLeft: -heads, ArrowRight: heads, ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (head && event.key === "x") toggle([head]);
    if (step) event.preventDefault(), tiles.get(names.flat()[number(head) + step])?.focus();
  });
  on(form, "input", () => (clearTimeout(waiting), (waiting = setTimeout(changed, 250))));
  on(form, "submit", (event) => (event.preventDefault(), changed(), load()));
  on(find("examples"), "click", ({ target }) => {
    if (target.type === "button") [form.elements.first.value, form.elements.second.value = ""] = target.textContent.split(" / "), changed();
  });
  on(find("needs"), "click", load);
  on(find("switch"), "click", () => toggle([state.head]));
  on(find("reset"), "click", () => toggle([...off()]));
  on(find("link"), "click", async ({ target }) => {
    const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
    target.textContent = copied ? "Copied" : "See the address";
    setTimeout(() => (target.textContent = "Copy link"), 2500);
  });
  on(find("save"), "click", () => {
    const { tokens, words } = result(), n = tokens.length, rows = (map) => tokens.map((_, q) => Array.from(map.subarray(q * n, q * n + n), (a) => +a.toFixed(5)));
    const maps = names.map((column) => column.map((head) => rows(mapOf(head)))), { cosine, cut } = result();
    const content = JSON.stringify({ model: given.model, ...state, tokens, words, cut, cosine, milliseconds: answer.ms, maps });
    make("a", { href: URL.createObjectURL(new Blob([content], { type: "application/json" })), download: `${given.model}-maps.json` }).click();
  });
  addEventListener("hashchange", read);
  root.hidden = false;
  root.dataset.drawn = "";
  read();
  if (await window.caches?.match(file).catch(() => null) && !find("load").disabled) load();
})(document.querySelector(".live"));
