// Package runs serves POST /v1/runs, which starts a program without a stored job. It also
// serves the plan of a run, which creates no run, and the explanation and the children of a run.
//
// A 202 means that the run and its input are stored. A repeated request with the same
// Idempotency-Key returns 200 and the same ids, in any state of the run.
package runs

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/sortie-dev/sortie/shared/app/jobs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// Routes returns the routes of runs.
func Routes(svc *jobs.Definitions, explanations *jobs.Explanations) []httpkit.Route {
	return []httpkit.Route{
		httpkit.ForClient(http.MethodPost, "/v1/runs", access.RunsWrite, httpkit.On(svc, start)),
		httpkit.ForClient(http.MethodPost, "/v1/runs:plan", access.RunsRead, httpkit.On(explanations, plan)),
		httpkit.ForClient(http.MethodGet, "/v1/runs/{run_id}/explain", access.RunsRead, httpkit.On(explanations, explained)),
	}
}

// bodyLimit is the largest size of a body: a definition and the base64 of an input.
const bodyLimit = limit.JobDocument + (limit.Input+2)/3*4

func start(svc *jobs.Definitions, w http.ResponseWriter, r *http.Request) error {
	key, err := httpkit.IdempotencyKey(r)
	if err != nil {
		return err
	}
	body, err := httpkit.ReadDocument(w, r, bodyLimit, httpkit.TypeJSON)
	if err != nil {
		return err
	}
	document, input, err := takeInput(body)
	if err != nil {
		return err
	}
	created, existing, err := svc.RunOnce(r.Context(), jobs.OnceRequest{
		Identity: httpkit.CallerOf(r.Context()), Document: document, Input: input,
		IdempotencyKey: key, CorrelationID: httpkit.CorrelationID(r.Context()), PayloadDigest: httpkit.PayloadDigest(r.Context()),
		TraceParent: httpkit.TraceParent(r),
	})
	if err != nil {
		return fmt.Errorf("cannot accept the run: %w", err)
	}
	return httpkit.WriteAccepted(w, existing, "/v1/runs/"+url.PathEscape(created.ID), api.RunAccepted(created))
}

// takeInput returns the document with an empty input, and the input. The document must be valid
// JSON. In a request the input is in base64, because it may be any bytes.
func takeInput(document []byte) (rest, input []byte, err error) {
	members := json.NewDecoder(bytes.NewReader(document))
	if brace, err := members.Token(); err != nil || brace != json.Delim('{') {
		return document, nil, nil //nolint:nilerr // the definition's own check names the problem
	}
	for members.More() {
		name, err := members.Token()
		var value json.RawMessage
		if err == nil {
			err = members.Decode(&value)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("cannot read a document that is JSON: %w", err)
		}
		if name != "input" {
			continue
		}
		if input, err = decodeInput(value); err != nil {
			return nil, nil, err
		}
		end := int(members.InputOffset())
		return slices.Concat(document[:end-len(value)], []byte(`""`), document[end:]), input, nil
	}
	return document, nil, nil
}

func decodeInput(value []byte) ([]byte, error) {
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return nil, fault.Invalid("input", "malformed input, want a string in base64")
	}
	input, err := base64.StdEncoding.Strict().DecodeString(text)
	switch {
	case err != nil:
		return nil, fault.Invalid("input", "malformed input, want base64 with padding (RFC 4648, section 4)")
	case len(input) > limit.Input:
		return nil, fault.Invalid("input", "%d bytes, want at most %d", len(input), limit.Input)
	}
	return input, nil
}
