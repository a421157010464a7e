package tasks_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/functions/callback"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/base/redact"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// printed is the output of a worker that prints its whole environment, and the
// secrets in it.
func printed(t *testing.T, stage *apitest.Stage, task string) (text string, secrets []string) {
	t.Helper()
	env, envelope := stage.Environment(t, task), stage.Envelope(t, task)
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(env)) {
		lines.WriteString(name + "=" + env[name] + "\n")
	}
	_, callbackToken, _ := strings.Cut(env["CALLBACK_URL"], "token=")
	secrets = []string{env["R2_ACCESS_KEY_ID"], env["R2_SECRET_ACCESS_KEY"], callbackToken, envelope.TaskToken}
	for _, line := range secrets { // also without a name
		lines.WriteString("the value is " + line + "\n")
	}
	for _, upload := range []string{envelope.Output.URL, envelope.Log.URL} {
		_, signature, _ := strings.Cut(upload, "X-Amz-Signature=")
		signature, _, _ = strings.Cut(signature, "&")
		secrets = append(secrets, signature)
	}
	return lines.String(), secrets
}

// wantMasked checks a log of the API.
func wantMasked(t *testing.T, stage *apitest.Stage, task string, secrets []string) {
	t.Helper()
	answer := stage.Call(t, http.MethodGet, "/v1/tasks/"+task+"/logs?attempt=1", "")
	if answer.Status != http.StatusOK || !strings.Contains(answer.Body, "TASK_ID="+task) || !strings.Contains(answer.Body, redact.Mask) {
		t.Errorf("got %d %.200q, want the environment with masks", answer.Status, answer.Body)
	}
	for i, secret := range secrets {
		if secret == "" || strings.Contains(answer.Body, secret) {
			t.Errorf("secret %d: got %q in the log, want it masked", i, secret)
		}
	}
}

func TestSecretsInTheMachinesLogAreMasked(t *testing.T) {
	t.Parallel()
	stage := setup(t)
	task := stage.Accept(t)
	stage.Start(t, task)
	text, secrets := printed(t, stage, task)
	stage.Write(t, task, text)
	wantMasked(t, stage, task, secrets)
	stage.LoseMachine(t, task)
	wantMasked(t, stage, task, secrets) // the stored log
}

// TestSecretsInAnUploadedLogAreMasked reads a log that is longer than the part that is served.
// One secret starts before the omitted part, and one ends after it.
func TestSecretsInAnUploadedLogAreMasked(t *testing.T) {
	t.Parallel()
	parts := apitest.NewParts(t)
	stage := apitest.New(t, parts, func(s *app.System) []httpkit.Route {
		return append(routes(parts.Signer)(s), callback.Routes(s.Workers, s.Intake)...)
	})
	task := stage.Accept(t)
	stage.Start(t, task)
	envelope := stage.Envelope(t, task)
	bearer := []string{"Authorization", "Bearer " + envelope.TaskToken}
	if answer := stage.Call(t, http.MethodPost, "/v1/tasks/"+task+"/started", `{"attempt":1,"workerId":"w"}`, bearer...); answer.Status != http.StatusOK {
		t.Fatalf("got %d %s, want 200", answer.Status, answer.Body)
	}
	text, secrets := printed(t, stage, task)
	const half = (1<<20 - 64) / 2
	begin := text + strings.Repeat("x", half-len(text)-len(envelope.TaskToken)/2) + envelope.TaskToken
	end := envelope.TaskToken + strings.Repeat("y", half-len(envelope.TaskToken)/2)
	stage.Objects.Store(port.Uploads, envelope.Log.Key, "text/plain", begin+strings.Repeat("z", 1<<20)+end)
	token := strings.Split(envelope.TaskToken, ".")
	secrets = append(secrets, token[2][len(token[2])/2:], token[1][:20])
	wantMasked(t, stage, task, secrets)
}
