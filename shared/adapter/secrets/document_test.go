package secrets_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/domain/access"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		kind, text string
		want       secrets.Document
		prints     map[string]string
	}{
		{
			"clients", `{"tokens":["the-first-token-","the-second-token"],"records":[{"name":"ci","sha256":"` + access.Digest("the-third-token-") + `",
			"tenant":"a","project":"b","scopes":["runs:read"],"expiresAt":"2026-05-01T00:00:00Z"}]}`,
			secrets.Clients{Tokens: []string{"the-first-token-", "the-second-token"}, Records: []access.Token{{
				Name: "ci", SHA256: access.Digest("the-third-token-"), Tenant: "a", Project: "b",
				Scopes: []access.Scope{access.RunsRead}, ExpiresAt: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC),
			}}},
			map[string]string{"tokens[0]": "b7ad93", "tokens[1]": "c04c86", "records.ci": "50465b"},
		},
		{"canary", `{"token":"FlyV1 a,b"}`, secrets.Canary{Token: "FlyV1 a,b"}, map[string]string{"token": "5fe987"}},
		{"traces", `{"headers":{"api-key":"FlyV1 a,b"}}`, secrets.Traces{Headers: map[string]string{"api-key": "FlyV1 a,b"}}, map[string]string{"headers.api-key": "5fe987"}},
		{"clients", `{"records":[]}`, secrets.Clients{Records: []access.Token{}}, map[string]string{}},
		{
			"kubernetes", `{"kubeconfig":"FlyV1 a,b","eks":"east_1"}`,
			secrets.Kubernetes{Kubeconfig: "FlyV1 a,b", EKS: "east_1"},
			map[string]string{"kubeconfig": "5fe987"},
		},
		{"fly", `{"token":"FlyV1 a,b"}`, secrets.Fly{Token: "FlyV1 a,b"}, map[string]string{"token": "5fe987"}},
		{
			"outputs", `{"accountId":"a","accessKeyId":"one","secretAccessKey":"two","workerAccessKeyId":"one","workerSecretAccessKey":"two"}`,
			secrets.Outputs{AccountID: "a", AccessKeyID: "one", SecretAccessKey: "two", WorkerAccessKeyID: "one", WorkerSecretAccessKey: "two"},
			map[string]string{"accessKeyId": "7692c3", "secretAccessKey": "3fc4cc", "workerAccessKeyId": "7692c3", "workerSecretAccessKey": "3fc4cc"},
		},
	} {
		got, err := secrets.Parse(row.kind, []byte(row.text))
		if err != nil {
			t.Errorf("%s: %v", row.kind, err)
			continue
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s:\n%s", row.kind, diff)
		}
		if diff := cmp.Diff(row.prints, got.Fingerprints()); diff != "" {
			t.Errorf("%s:\n%s", row.kind, diff)
		}
	}
}

func TestParseNamesAllProblems(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		kind, text string
		says       []string
	}{
		{"clients", `{}`, []string{"tokens and records are missing"}},
		{"clients", `{"tokens":["", "s3cret-of-16-char", "s3cret-of-16-char", "a b", "a,b", "é", "s3cret"]}`, []string{
			"tokens[0]: empty", "tokens[2] is listed twice", "tokens[3]: invalid char", "tokens[4]: invalid char", "tokens[5]: invalid char",
			"tokens[6]: token of 6 characters, want at least 16",
		}},
		{"clients", `{"records":[{"name":"A","sha256":"s3cret","tenant":"","project":"a/b","scopes":["runs"]},{"name":"A","sha256":"s3cret","tenant":"a","project":"b"}]}`, []string{
			"records[0].name", "records[0].sha256", "records[0].tenant", "records[0].project", `records[0].scopes: unknown scope "runs"`,
			"records[1].scopes: missing", "two records", "the same token",
		}},
		{"clients", `{"tokens":"s3cret"}`, []string{"tokens is not of its type"}},
		{"fly", `{"tokens":["s3cret"]}`, []string{`"tokens" that is not known`}},
		{"fly", `{"token":"s3cret"} {}`, []string{"after"}},
		{"kubernetes", `{"kubeconfig":" ","eks":"s3cret/"}`, []string{"kubeconfig is missing", "eks is malformed"}},
		{"fly", `s3cret`, []string{"no JSON"}},
		{"fly", ``, []string{"no JSON"}},
		{"outputs", `{"endpoint":"s3cret.example"}`, []string{
			"accessKeyId is missing", "secretAccessKey is missing", "workerAccessKeyId is missing", "workerSecretAccessKey is missing", "endpoint is no",
		}},
		{"keys", `{}`, []string{"clients, fly, kubernetes, outputs"}},
	} {
		_, err := secrets.Parse(row.kind, []byte(row.text))
		for _, part := range row.says {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s %s: got an error without %q: %v", row.kind, row.text, part, err)
			}
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("got an error with a value: %v", err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{`{"tokens":["a"]}`, `{"token":"a"}`, `{"accessKeyId":"a"}`, `{"token":1}`, `[]`, `{"token":"a"}x`} {
		f.Add("fly", text)
		f.Add("clients", text)
		f.Add("outputs", text)
	}
	f.Fuzz(func(t *testing.T, kind, text string) {
		document, err := secrets.Parse(kind, []byte(text))
		if err != nil {
			return
		}
		again, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := secrets.Parse(kind, again); err != nil || !cmp.Equal(document, same) {
			t.Errorf("%q: got %q (%v)", text, again, err)
		}
	})
}

func TestPut(t *testing.T) {
	t.Parallel()
	written := map[string]any{}
	cfg := awstest.Serve(t, map[string]awstest.Call{"PutSecretValue": func(input json.RawMessage) (any, error) {
		if err := json.Unmarshal(input, &written); err != nil {
			return nil, err
		}
		switch written["SecretId"] {
		case "sortie/gone/fly":
			return nil, awstest.Refusal{Code: "ResourceNotFoundException", Message: "no"}
		case "sortie/closed/fly":
			return nil, awstest.Refusal{Code: "AccessDeniedException", Message: "no"}
		}
		return map[string]any{}, nil
	}})
	name, err := secrets.Put(t.Context(), cfg, "prod", secrets.Fly{Token: "t"})
	if err != nil || name != "sortie/prod/fly" || written["SecretId"] != name || written["SecretString"] != `{"token":"t"}` {
		t.Errorf("%s: got %v (%v)", name, written, err)
	}
	if _, err := secrets.Put(t.Context(), cfg, "gone", secrets.Fly{Token: "t"}); err == nil || !strings.Contains(err.Error(), "deploying the stage gone") {
		t.Errorf("missing secret: got %v", err)
	}
	if _, err := secrets.Put(t.Context(), cfg, "closed", secrets.Fly{Token: "t"}); err == nil || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("without permission: got %v", err)
	}
}
