package command_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
)

const outputsDocument = `{"accountId":"a","accessKeyId":"one","secretAccessKey":"two","workerAccessKeyId":"three","workerSecretAccessKey":"four"}`

// vault starts a Secrets Manager with the secrets of the stage prod. written gets their new
// values.
func vault(t *testing.T) (written map[string]string, reach func(context.Context) (aws.Config, error)) {
	t.Helper()
	written = map[string]string{}
	cfg := awstest.Serve(t, map[string]awstest.Call{"PutSecretValue": func(input json.RawMessage) (any, error) {
		var request struct{ SecretId, SecretString string } //nolint:revive,staticcheck // the API's spelling
		if err := json.Unmarshal(input, &request); err != nil {
			return nil, err
		}
		if !strings.HasPrefix(request.SecretId, "sortie/prod/") {
			return nil, awstest.Refusal{Code: "ResourceNotFoundException", Message: "no such secret"}
		}
		written[request.SecretId] = request.SecretString
		return map[string]any{}, nil
	}})
	return written, func(context.Context) (aws.Config, error) { return cfg, nil }
}

func TestSecretsAreWrittenAndNotPrinted(t *testing.T) {
	t.Parallel()
	written, reach := vault(t)
	got := sortieOn(t.Context(), reach, nil, outputsDocument, "secrets", "put", "outputs", "--stage", "prod")
	const want = "7692c3 accessKeyId\n3fc4cc secretAccessKey\n8b5b9d workerAccessKeyId\n04efaf workerSecretAccessKey\n"
	if got.code != 0 || got.stdout != want || !strings.Contains(got.stderr, "sortie/prod/outputs") {
		t.Errorf("got %+v", got)
	}
	if written["sortie/prod/outputs"] != outputsDocument {
		t.Errorf("got the values %v", written)
	}
	file := filepath.Join(t.TempDir(), "fly.json")
	if err := os.WriteFile(file, []byte(` { "token" : "FlyV1 a,b" } `), 0o600); err != nil {
		t.Fatal(err)
	}
	got = sortieOn(t.Context(), reach, nil, "", "secrets", "put", "fly", "--stage", "prod", "--file", file, "--json")
	var printed struct {
		Secret       string
		Fingerprints map[string]string
	}
	if err := json.Unmarshal([]byte(got.stdout), &printed); err != nil || printed.Secret != "sortie/prod/fly" || printed.Fingerprints["token"] != "5fe987" {
		t.Errorf("got %+v (%v)", got, err)
	}
	if written["sortie/prod/fly"] != `{"token":"FlyV1 a,b"}` {
		t.Errorf("got the values %v", written)
	}
}

func TestWrongSecretsAreRefused(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, stdin string
		args        []string
		code        int
		says        []string
	}{
		{"malformed document", `{"tokens":["","s3cret","s3cret"]}`, []string{"clients", "--stage", "prod"}, 2, []string{"tokens[0]", "tokens[2]"}},
		{"document of another secret", outputsDocument, []string{"fly", "--stage", "prod"}, 2, []string{"accountId"}},
		{"empty document", "", []string{"fly", "--stage", "prod"}, 2, []string{"no JSON"}},
		{"too long", `{"token":"` + strings.Repeat("x", 64<<10) + `"}`, []string{"fly", "--stage", "prod"}, 2, []string{"65536 bytes"}},
		{"misspelt name", `{}`, []string{"fyl", "--stage", "prod"}, 2, []string{"did you mean fly?", "--tenant default"}},
		{"malformed name", `{}`, []string{"Fly", "--stage", "prod"}, 2, []string{"clients, fly, kubernetes, outputs"}},
		{"malformed tenant", `s3cret`, []string{"api-key", "--stage", "prod", "--tenant", "a/b"}, 2, []string{`"a/b"`}},
		{"empty value", "\n", []string{"api-key", "--stage", "prod"}, 2, []string{"0 bytes"}},
		{"value with a NUL", "s3cret\x00", []string{"api-key", "--stage", "prod"}, 2, []string{"without a NUL"}},
		{"long value", strings.Repeat("s3cret", 6000), []string{"api-key", "--stage", "prod"}, 2, []string{"32768 bytes"}},
		{"stage's secret in a data folder", `{"token":"s3cret"}`, []string{"canary"}, 2, []string{"--stage"}},
		{"no stage", `{}`, []string{"fly"}, 2, []string{"stage"}},
		{"malformed stage", `{}`, []string{"fly", "--stage", "prod/x"}, 2, []string{"--stage"}},
		{"missing file", "", []string{"fly", "--stage", "prod", "--file", "/nowhere/fly.json"}, 2, []string{"/nowhere/fly.json"}},
		{"stage that is not deployed", `{"token":"s3cret"}`, []string{"fly", "--stage", "dev"}, 1, []string{"sortie/dev/fly", "deploying"}},
		{"value as the name", "", []string{`{"token":"s3cret"}`, "--stage", "prod"}, 2, []string{"clients, fly, kubernetes, outputs"}},
		{"value as an argument", "", []string{"fly", "--stage", "prod", `{"token":"s3cret"}`}, 2, []string{"arg"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			written, reach := vault(t)
			got := sortieOn(t.Context(), reach, nil, row.stdin, append([]string{"secrets", "put"}, row.args...)...)
			if got.code != row.code || got.stdout != "" || len(written) > 0 {
				t.Errorf("got %+v and the values %v, want exit code %d and none", got, written, row.code)
			}
			for _, part := range row.says {
				if !strings.Contains(got.stderr, part) {
					t.Errorf("got %q, want %q", got.stderr, part)
				}
			}
			if strings.Contains(got.stderr, "s3cret") {
				t.Errorf("got a value on standard error: %s", got.stderr)
			}
		})
	}
}

func TestSecretsReportsAWSErrors(t *testing.T) {
	t.Parallel()
	nowhere := func(context.Context) (aws.Config, error) { return aws.Config{}, errors.New("no profile x") }
	got := sortieOn(t.Context(), nowhere, nil, `{"token":"s3cret"}`, "secrets", "put", "fly", "--stage", "prod")
	if got.code != 1 || !strings.Contains(got.stderr, "no profile x") {
		t.Errorf("got %+v", got)
	}
}
