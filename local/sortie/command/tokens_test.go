package command_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/adapter/sqlite"
	"github.com/sortie-dev/sortie/shared/adapter/tokenfile"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	core "github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

func TestTokensOfAFolder(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	run := func(args ...string) result {
		t.Helper()
		return sortie(t, nil, "", append([]string{"tokens"}, append(args, "--data", data)...)...)
	}
	first := run("add", "ci")
	text := strings.TrimSpace(first.stdout)
	if first.code != 0 || access.CheckText(text) != nil {
		t.Fatalf("add: got %+v, want a token", first)
	}
	second := run("add", "acme", "--tenant", "acme", "--project", "web", "--scope", "runs:read", "--expires", "2h", "--json")
	var added struct {
		Token, Name, Tenant, Project string
		Scopes                       []string
		ExpiresAt                    time.Time
	}
	if err := json.Unmarshal([]byte(second.stdout), &added); err != nil || added.Tenant != "acme" || added.Project != "web" ||
		len(added.Scopes) != 1 || time.Until(added.ExpiresAt) > 2*time.Hour || time.Until(added.ExpiresAt) < time.Hour {
		t.Errorf("add --json: got %+v, %v", second, err)
	}
	file := filepath.Join(data, "tokens.json")
	tokens, _, err := tokenfile.Read(file)
	if err != nil || len(tokens) != 2 {
		t.Fatalf("got the records %+v, %v, want two", tokens, err)
	}
	if found, ok := access.Find(tokens, text); !ok || found.Tenant != "default" || found.Project != "default" || len(found.Scopes) != 2 || !found.ExpiresAt.IsZero() {
		t.Errorf("got %+v, %v, want a record of default/default with two scopes", found, ok)
	}
	stored, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(stored), text) || strings.Contains(string(stored), added.Token) {
		t.Errorf("got a token in the file, %v, want its digest only", err)
	}
	list := run("list")
	if list.code != 0 || strings.Count(list.stdout, "\n") != 3 || !strings.Contains(list.stdout, access.Digest(text)[:6]) || strings.Contains(list.stdout, text) {
		t.Errorf("list: got %+v, want two records with fingerprints", list)
	}
	if got := run("revoke", "ci"); got.code != 0 || !strings.Contains(got.stderr, "within 1s") {
		t.Errorf("revoke: got %+v", got)
	}
	if tokens, _, err := tokenfile.Read(file); err != nil || len(tokens) != 1 || tokens[0].Name != "acme" {
		t.Errorf("got the records %+v, %v, want acme's", tokens, err)
	}
}

// TestLimitsOfATokenAreListed adds a token with limits, and lists it with what the account of its
// budget has spent. The account is that of an open database.
func TestLimitsOfATokenAreListed(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	run := func(args ...string) result {
		t.Helper()
		return sortie(t, nil, "", append([]string{"tokens"}, append(args, "--data", data)...)...)
	}
	if got := run("add", "alice", "--models", "a,b", "--budget", "20USD/total", "--rate", "60/minute", "--expires", "2126-12-31"); got.code != 0 {
		t.Fatalf("got %+v", got)
	}
	for _, want := range []string{"a,b", "0.00 of 20 USD/total", "60/minute", "2126-12-31 00:00:00"} {
		if got := run("list"); got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("got %+v, want %q", got, want)
		}
	}
	db, err := sqlite.Open(t.Context(), filepath.Join(data, stack.RecordsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	store, err := sqlite.NewStore(t.Context(), db, clock.System{})
	if err != nil {
		t.Fatal(err)
	}
	if got := run("list"); got.code != 0 || !strings.Contains(got.stdout, "0.00 of 20 USD/total") {
		t.Errorf("got %+v of an empty database", got)
	}
	r := core.Run{Tenant: "default", ID: "r", TaskID: "r", State: core.Pending}
	r.Reservation = (core.Reservation{Scopes: []string{"key:alice@total"}}).Renewed(budget.Amount{CostNano: 3_500_000_000})
	_, err = store.Create(t.Context(), port.WriteOf(core.New(r, time.Now())), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := run("list", "--json"); got.code != 0 || !strings.Contains(got.stdout, `"heldNanodollars": 3500000000`) || !strings.Contains(got.stdout, `"spentNanodollars": 0`) {
		t.Errorf("got %+v, want what is held", got)
	}
}

func TestWrongTokenCommandsAreRefused(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	if got := sortie(t, nil, "", "tokens", "add", "ci", "--data", data); got.code != 0 {
		t.Fatalf("got %+v", got)
	}
	for args, row := range map[string]struct {
		code int
		says string
	}{
		"add ci":                         {2, "two records"},
		"add CI":                         {2, "records[1].name"},
		"add b --scope runs":             {2, `unknown scope "runs"`},
		"add b --tenant a/b":             {2, "records[1].tenant"},
		"add b --expires -1h":            {2, "--expires"},
		"add b --expires 2026-01-01":     {2, "--expires: 2026-01-01 is not in the future"},
		"add b --expires soon":           {2, "--expires: malformed time"},
		"add b --budget 20EUR/month":     {2, "--budget: malformed budget"},
		"add b --budget 20/year":         {2, "--budget: unknown period"},
		"add b --rate 5/hour":            {2, "--rate: malformed rate"},
		"add b --rate 0/minute":          {2, "--rate: malformed rate"},
		"add b --models a,a":             {2, "records[1].models"},
		"add":                            {2, "missing NAME"},
		"revoke b":                       {4, "no client token has this name"},
		"add b --stage Prod":             {2, "--stage"},
		"list --data " + data + "/none/": {0, ""},
	} {
		words := strings.Fields(args)
		if !strings.Contains(args, "--data") {
			words = append(words, "--data", data)
		}
		if got := sortie(t, nil, "", append([]string{"tokens"}, words...)...); got.code != row.code || !strings.Contains(got.stderr, row.says) {
			t.Errorf("%s: got %+v, want exit code %d and %q", args, got, row.code, row.says)
		}
	}
}

// TestTokensOfAStage changes the records of an initially empty secret, and keeps its plain
// tokens.
func TestTokensOfAStage(t *testing.T) {
	t.Parallel()
	stored := ""
	cfg := awstest.Serve(t, map[string]awstest.Call{
		"GetSecretValue": func(json.RawMessage) (any, error) {
			if stored == "" {
				return nil, awstest.Refusal{Code: "ResourceNotFoundException", Message: "no value"}
			}
			return map[string]any{"SecretString": stored}, nil
		},
		"PutSecretValue": func(input json.RawMessage) (any, error) {
			var request struct{ SecretString string } //nolint:revive,staticcheck // the API's spelling
			if err := json.Unmarshal(input, &request); err != nil {
				return nil, err
			}
			stored = request.SecretString
			return map[string]any{}, nil
		},
	})
	run := func(args ...string) result {
		t.Helper()
		reach := func(context.Context) (aws.Config, error) { return cfg, nil }
		return sortieOn(t.Context(), reach, nil, "", append([]string{"tokens"}, append(args, "--stage", "prod")...)...)
	}
	clients := func() secrets.Clients {
		t.Helper()
		document, err := secrets.Parse("clients", []byte(stored))
		if err != nil {
			t.Fatalf("%s: %v", stored, err)
		}
		return document.(secrets.Clients) //nolint:forcetypeassert // as the kind is
	}
	added := run("add", "ci")
	if _, ok := access.Find(clients().All(), strings.TrimSpace(added.stdout)); added.code != 0 || !ok {
		t.Errorf("add: got %+v and the document %s", added, stored)
	}
	_, records, _ := strings.Cut(stored, "[")
	stored = `{"tokens":["a-plain-token-of-before"],"records":[` + records
	if got := run("revoke", "ci"); got.code != 0 || !strings.Contains(got.stderr, "within 5m0s") {
		t.Errorf("revoke: got %+v", got)
	}
	if got := clients(); len(got.Records) != 0 || len(got.Tokens) != 1 {
		t.Errorf("got %+v, want the plain token alone", got)
	}
	stored = `{"records":[` + string(mustJSON(t, access.Full("ci", "text", "default", "default"))) + `]}`
	if got := run("revoke", "ci"); got.code != 0 || clients().Records == nil {
		t.Errorf("the last revoke: got %+v and %s, want a document that readers accept", got, stored)
	}
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestHintOfARefusedServer checks that the hint about AUTH_TOKEN appears only if it helps.
func TestHintOfARefusedServer(t *testing.T) {
	t.Parallel()
	open := t.TempDir()
	file := filepath.Join(open, "tokens.json")
	err := os.WriteFile(file, []byte("[]"), 0o600)
	if err == nil {
		err = os.Chmod(file, 0o644) //nolint:gosec // G302: the mode is the fault
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name, data, addr string
		want             string
		hint             bool
	}{
		{"missing token", t.TempDir(), "0.0.0.0:0", "missing client token", true},
		{"tokens that others can read", open, "127.0.0.1:0", "mode 0644", false},
	} {
		got := sortie(t, nil, "", "dev", "--data", row.data, "--addr", row.addr)
		if got.code != 2 || !strings.Contains(got.stderr, row.want) || strings.Contains(got.stderr, "AUTH_TOKEN") != row.hint {
			t.Errorf("%s: got %+v, want exit code 2, %q and a hint %t", row.name, got, row.want, row.hint)
		}
	}
}
