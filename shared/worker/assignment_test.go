package worker_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/worker"
)

const plainEnvelope = `{"taskId":"t","runId":"j:2025","attempt":1,"callbackBaseUrl":"https://api.test","taskToken":"a.b.c","tokenExpiresAt":"2025-01-15T12:00:00Z","new":{"member":1}}`

func TestAnEnvelopeHasTheContractsDefaults(t *testing.T) {
	t.Parallel()
	a, err := worker.ReadAssignment([]string{"TASK_ENVELOPE=" + plainEnvelope, "CALLBACK_URL=http://c.test", "TASK_ID=other"})
	if err != nil {
		t.Fatal(err)
	}
	e := a.Envelope
	if a.TaskID != "t" || a.CallbackURL != "" || e.HeartbeatIntervalMS != 30_000 || e.HeartbeatTimeoutMS != 90_000 || e.CancelGracePeriodMS != 30_000 {
		t.Errorf("the assignment is %+v, %+v", a, e)
	}
}

func TestTheExportContractsVariablesDoWithoutAnEnvelope(t *testing.T) {
	t.Parallel()
	a, err := worker.ReadAssignment([]string{"CALLBACK_URL=http://c.test/callback/t?token=x", "TASK_ID=t"})
	if err != nil || a.Envelope != nil || a.TaskID != "t" || a.BatchID != "single" {
		t.Errorf("the assignment is %+v, %v", a, err)
	}
	if _, err := worker.ReadAssignment([]string{"PATH=/bin", "TASK_ID=t"}); !errors.Is(err, worker.ErrNoTask) {
		t.Errorf("no task gives %v", err)
	}
}

// TestAnInvalidEnvelopeNamesAllProblemsAndNoValue: it holds secrets.
func TestAnInvalidEnvelopeNamesAllProblemsAndNoValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`{`:                           {"not JSON"},
		`secret`:                      {"not JSON"},
		`[]`:                          {"no object"},
		`null`:                        {"taskId", "attempt", "callbackBaseUrl", "taskToken"},
		`{"attempt":"secret"}`:        {"attempt has the wrong type"},
		`{"tokenExpiresAt":"secret"}`: {"RFC 3339"},
		`{"taskId":"../secret","attempt":-1,"callbackBaseUrl":"ftp://secret","taskToken":"sec ret","heartbeatIntervalMs":-5,"output":{"url":"secret"}}`: {
			"taskId", "attempt", "callbackBaseUrl", "taskToken", "heartbeatIntervalMs", "output.url",
		},
		`{"taskId":"` + strings.Repeat("s", 2<<20) + `"}`: {"over 1 MiB"},
	} {
		_, err := worker.ReadAssignment([]string{"TASK_ENVELOPE=" + text})
		if err == nil {
			t.Errorf("%.40s is taken", text)
			continue
		}
		for _, part := range append(want, "TASK_ENVELOPE is not valid") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%.40s gives %q, want %q in it", text, err, part)
			}
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%.40s is quoted: %v", text, err)
		}
	}
}

func FuzzParseEnvelope(f *testing.F) {
	whole, err := json.Marshal(envelope())
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{plainEnvelope, string(whole), `null`, `{"attempt":1e9}`, `{"output":null,"resources":{"memoryBytes":1}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := worker.ParseEnvelope(text)
		if err != nil {
			return
		}
		if e.TaskID == "" || e.Attempt < 1 || e.HeartbeatIntervalMS < 1 || e.CancelGracePeriodMS < 1 || strings.ContainsAny(e.TaskToken, " \r\n") {
			t.Errorf("%q is taken as %+v", text, e)
		}
		again, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var back contract.TaskEnvelope
		if err := json.Unmarshal(again, &back); err != nil || back.TaskID != e.TaskID || back.TaskToken != e.TaskToken {
			t.Errorf("%s does not come back: %v", again, err)
		}
	})
}
