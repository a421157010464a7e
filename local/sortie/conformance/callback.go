package conformance

import (
	"mime"
	"net/http"
	"strings"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// answerCallbackUnanswered drops the answer to the first callback.
func answerCallbackUnanswered(_ *session, c *Call, n int) *Answer {
	if c.Endpoint == endpointCallback && n == 0 {
		return &Answer{Drop: true}
	}
	return nil
}

// checkCallback checks a worker that only uses the export contract.
func (st *session) checkCallback() {
	calls := st.calls(endpointCallback)
	first := calls[0]
	if st.scenario == "callback-unanswered" {
		st.note(noteCallbackRetry, yes(len(calls) > 1))
		return
	}
	kind, _, _ := mime.ParseMediaType(first.Header.Get("Content-Type"))
	status, _ := first.Fields["status"].(string)
	switch {
	case len(calls) > 1:
		st.fail(reqCallback, Failed, "", "got %d callbacks, although the first was answered", len(calls))
	case first.Method != http.MethodPost || kind != "application/json" || first.Fields == nil:
		st.fail(reqCallback, Failed, "", "got %s with Content-Type %q, and its body is a JSON object: %s", st.shown(first), kind, yes(first.Fields != nil))
	case first.Fields["task_id"] != st.plane.envelope.TaskID || first.Fields["batch_id"] != "single":
		st.fail(reqCallback, Failed, "", "got task_id %v, batch_id %v, want %s, single", first.Fields["task_id"], first.Fields["batch_id"], st.plane.envelope.TaskID)
	case status != contract.StatusSuccess && status != contract.StatusError:
		st.fail(reqCallback, Failed, "", "got status %q", status)
	default:
		st.require(reqCallback, true, "")
	}
	if status == contract.StatusSuccess {
		st.checkCallbackOutput(first)
	}
	if status == contract.StatusError {
		text, _ := first.Fields["error"].(string)
		st.require(reqCallbackError, text != "", "got error %v", first.Fields["error"])
	}
	st.require(reqCallbackSecret, !st.hasSecret(st.worker.output.String()), "the worker printed one")
	st.require(reqCallbackEnds, !st.stopped, "the process had not ended %s after the callback", st.config.Abort)
	_, metrics := first.Fields["metrics"].(map[string]any)
	st.note(noteMetrics, yes(metrics))
}

// checkCallbackOutput checks the output of a success, which is optional.
func (st *session) checkCallbackOutput(c *Call) {
	key, given := c.Fields["output_r2_key"]
	if !given {
		st.note(noteUpload, yes(false))
		return
	}
	text, _ := key.(string)
	name, _ := c.Fields["output_file_name"].(string)
	size, _ := c.Fields["output_file_size"].(float64)
	stored, ok := st.plane.Object(text)
	st.note(noteUpload, yes(ok))
	switch want := "exports/" + st.plane.envelope.TaskID + "/" + name; {
	case text != want || name == "" || strings.Contains(name, "/"):
		st.fail(reqCallbackOutput, Failed, "", "got output_r2_key %v with output_file_name %q", key, name)
	case !ok:
		st.fail(reqCallbackOutput, Failed, "", "the bucket has no object %s", text)
	default:
		st.require(reqCallbackOutput, int(size) == len(stored), "got output_file_size %v, want %d", c.Fields["output_file_size"], len(stored))
	}
}
