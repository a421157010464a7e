package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/functions/registry"
	"github.com/sortie-dev/sortie/local/proof/api/apitest"
	"github.com/sortie-dev/sortie/shared/app"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

func TestModelsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	stage := apitest.New(t, apitest.NewParts(t), func(s *app.System) []httpkit.Route { return registry.CatalogRoutes(s.Models) })
	file := filepath.Join(t.TempDir(), "signature.json")
	if err := os.WriteFile(file, []byte(`{"payloadType": "text/plain"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		args string
		code int
		want string // in the output, or in the error message
	}{
		{"add llama --engine vllm,tgi --context 8192 --tag a --source hf:a/b --input-price 4 --cached-price 1 --output-price 5", 0, "llama: Active, unsigned, for vllm, tgi\n"},
		{"add gemma --engine vllm --strict", 2, "the model is not signed"},
		{"add gemma", 2, "missing engines, want at least one of"},
		{"add gemma --engine vllm --signature " + file, 2, "payload type"},
		{"list --engine tgi", 0, "MODEL  STATE   TRUST     ENGINES   CONTEXT  TAGS\nllama  Active  unsigned  vllm,tgi  8192     a\n"},
		{"show llama", 0, "context: 8192\nprice: 4 nano-dollars for a token of the prompt, 1 for a cached one, 5 for a generated one\nsource: hf:a/b\ntags: a\nchanged: 2026-01-02 03:04:05 UTC, by "},
		{"retire llama", 0, "llama: Retired, "},
		{"list --state Active", 0, "MODEL  STATE"},
		{"activate llama", 0, "llama: Active, "},
		{"add small --engine vllm --split llama=10%", 0, "small: Active, "},
		{"show small", 0, "split: 10 % of the tasks for model llama\n"},
		{"split small llama=5", 0, "split: 5 % of the tasks for model llama\n"},
		{"split small llama=101", 2, "split.0.percent"},
		{"split small none=5", 2, "split.0.model"},
		{"split small llama", 2, `malformed share "llama", want a model and a percentage`},
		{"shadow small llama=10%", 0, "shadow: 10 % of the tasks are copied to model llama\n"},
		{"shadow small none=5", 2, "shadow.0.model"},
		{"shadow small small=5", 2, "shadow.0.model"},
		{"shadow small llama=0", 2, "shadow.0.percent"},
		{"shadow small", 0, "small: Active, "},
		{"add other --engine vllm --split =5", 2, "malformed share"},
		{"split small", 0, "small: Active, "},
		{"remove small", 0, "removed small\n"},
		{"verify llama", 1, "llama is not trusted: the model is not signed"},
		{"remove llama", 0, "removed llama\n"},
		{"show llama", 4, "no such model"},
	} {
		got := sortie(t, map[string]string{"SORTIE_URL": stage.URL}, "", append([]string{"models"}, strings.Fields(step.args)...)...)
		if got.code != step.code || !strings.Contains(got.stdout+got.stderr, step.want) {
			t.Errorf("models %s: got exit code %d with\n%s%s\nwant %d with\n%s", step.args, got.code, got.stdout, got.stderr, step.code, step.want)
		}
	}
}
