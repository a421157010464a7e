// Follows the answer of a task while it is generated: its text, the time to the first token and
// the tokens a second. Without this module the form shows the whole answer.

for (const form of document.querySelectorAll("form[data-ask]")) {
  const live = document.createElement("input");
  Object.assign(live, { type: "hidden", name: "live", value: "1" });
  form.append(live);
  form.querySelector("textarea[name=prompt]").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
}

const answer = document.querySelector("[data-stream]");
if (answer) follow(answer);

function follow(place) {
  const text = place.querySelector("[data-text]");
  const reasoning = place.querySelector("[data-reasoning]");
  const status = place.querySelector("[role=status]");
  const cancel = place.querySelector("form[data-cancel]");
  const source = new EventSource(place.dataset.stream);
  // The page was requested by the form, so its clock began with the question.
  let first = 0;
  let pieces = 0;
  let pending = { text: "", reasoning: "" };
  let frame = 0;

  const flush = () => {
    frame = 0;
    if (pending.text) text.append(pending.text);
    if (pending.reasoning) {
      reasoning.parentElement.hidden = false;
      reasoning.append(pending.reasoning);
    }
    pending = { text: "", reasoning: "" };
    if (!first) return;
    const since = performance.now() - first;
    status.textContent = `first token after ${seconds(first)}${since > 500 ? ` · ${rate(pieces, since)} pieces a second` : ""}`;
  };
  const piece = (kind) => (event) => {
    first ||= performance.now();
    pieces++;
    pending[kind] += JSON.parse(event.data).t;
    frame ||= requestAnimationFrame(flush);
  };
  const end = (words, look) => {
    source.close();
    cancelAnimationFrame(frame);
    flush();
    place.dataset.state = look;
    text.setAttribute("aria-busy", "false");
    status.textContent = words;
    cancel?.remove();
  };
  source.addEventListener("started", (event) => {
    const { queue_position: queued } = JSON.parse(event.data);
    if (!first) status.textContent = queued > 0 ? `queued behind ${queued}` : "waiting for the first token …";
  });
  source.addEventListener("token", piece("text"));
  source.addEventListener("reasoning", piece("reasoning"));
  source.addEventListener("end", (event) => {
    const { tokens_in: input, tokens_out: output, decode_ms: ms, finish_reason: finish } = JSON.parse(event.data);
    const parts = [`${output} tokens from ${input}`];
    if (first) parts.push(`first token after ${seconds(first)}`);
    if (ms > 0) parts.push(`${rate(output, ms)} tokens a second`);
    if (finish) parts.push(`finished: ${finish}`);
    end(parts.join(" · "), "good");
  });
  source.addEventListener("error", (event) => {
    if (event.data) {
      const { code, message } = JSON.parse(event.data);
      end(`${code}: ${message}`, "bad");
    } else if (source.readyState === EventSource.CLOSED) {
      end("The connection has ended. The page of the run has the answer.", "bad");
    }
  });
  cancel?.addEventListener("submit", async (event) => {
    event.preventDefault();
    cancel.querySelector("button").disabled = true;
    await fetch(cancel.action, { method: "POST", body: new URLSearchParams(new FormData(cancel)), redirect: "manual" });
  });
}

function seconds(ms) { return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`; }

function rate(count, ms) { return ms > 0 ? (count * 1000 / ms).toFixed(count * 1000 / ms < 10 ? 1 : 0) : "–"; }
