package worker_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/sdk/go/worker"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

const plainEnvelope = `{"taskId":"t","runId":"j:2025","attempt":1,"callbackBaseUrl":"https://api.test","taskToken":"a.b.c","tokenExpiresAt":"2025-01-15T12:00:00Z","new":{"member":1}}`

func TestEnvelopeDefaults(t *testing.T) {
	t.Parallel()
	a, err := worker.ReadAssignment([]string{"TASK_ENVELOPE=" + plainEnvelope, "CALLBACK_URL=http://c.test", "TASK_ID=other"})
	if err != nil {
		t.Fatal(err)
	}
	e := a.Envelope
	if a.TaskID != "t" || a.CallbackURL != "" || e.HeartbeatIntervalMS != 30_000 || e.HeartbeatTimeoutMS != 90_000 || e.CancelGracePeriodMS != 30_000 {
		t.Errorf("got %+v, %+v, want task t with the default times", a, e)
	}
}

func TestAssignmentWithoutEnvelope(t *testing.T) {
	t.Parallel()
	a, err := worker.ReadAssignment([]string{"CALLBACK_URL=http://c.test/callback/t?token=x", "TASK_ID=t"})
	if err != nil || a.Envelope != nil || a.TaskID != "t" || a.BatchID != "single" {
		t.Errorf("got %+v, %v, want task t of batch single", a, err)
	}
	if _, err := worker.ReadAssignment([]string{"PATH=/bin", "TASK_ID=t"}); !errors.Is(err, worker.ErrNoTask) {
		t.Errorf("got error %v, want ErrNoTask", err)
	}
}

// TestInvalidEnvelopeNamesEveryProblemAndNoValue checks that the error contains no value,
// because the values are secrets.
func TestInvalidEnvelopeNamesEveryProblemAndNoValue(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`{`:                           {"not JSON"},
		`secret`:                      {"not JSON"},
		`[]`:                          {"want an object"},
		`null`:                        {"taskId", "attempt", "callbackBaseUrl", "taskToken"},
		`{"attempt":"secret"}`:        {"attempt has the wrong type"},
		`{"tokenExpiresAt":"secret"}`: {"RFC 3339"},
		`{"taskId":"../secret","attempt":-1,"callbackBaseUrl":"ftp://secret","taskToken":"sec ret","heartbeatIntervalMs":-5,"output":{"url":"secret"}}`: {
			"taskId", "attempt", "callbackBaseUrl", "taskToken", "heartbeatIntervalMs", "output.url",
		},
		`{"taskId":"` + strings.Repeat("s", 2<<20) + `"}`: {"larger than 1 MiB"},
	} {
		_, err := worker.ReadAssignment([]string{"TASK_ENVELOPE=" + text})
		if err == nil {
			t.Errorf("%.40s: got no error, want %q", text, want)
			continue
		}
		for _, part := range append(want, "invalid TASK_ENVELOPE") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%.40s: got error %q, want %q in it", text, err, part)
			}
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%.40s: got a value in the error: %v", text, err)
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
			t.Errorf("%q: got %+v, want an error", text, e)
		}
		again, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var back contract.TaskEnvelope
		if err := json.Unmarshal(again, &back); err != nil || back.TaskID != e.TaskID || back.TaskToken != e.TaskToken {
			t.Errorf("%s: got %+v, %v after decoding, want %+v", again, back, err, e)
		}
	})
}
