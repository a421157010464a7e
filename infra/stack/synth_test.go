package stack_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"github.com/sortie-dev/sortie/infra/stack"
	"github.com/sortie-dev/sortie/local/sortie/template"
)

func TestMain(m *testing.M) {
	if _, err := exec.LookPath("node"); err != nil {
		fmt.Fprintln(os.Stderr, "These tests need Node 20 or newer for the CDK: install it and run them again.")
		os.Exit(1)
	}
	code := m.Run()
	jsii.Close()
	os.Exit(code)
}

// named finds the resource of a type by its id, to which the CDK may append a hash.
func named(tb testing.TB, t template.Template, kind, id string) *template.Resource {
	tb.Helper()
	for _, r := range t.Of(kind) {
		if strings.TrimRight(r.ID, "0123456789ABCDEF") == id || r.ID == id {
			return r
		}
	}
	tb.Fatalf("no %s %s in the template", kind, id)
	return nil
}

// given returns a Given with the settings in more and the setting with which a stage exports.
func given(more map[string]any) stack.Given {
	return func(key string) (any, bool) {
		if value, ok := more[key]; ok {
			return value, true
		}
		value, ok := map[string]any{"SOURCE_API_URL": "https://entities.example.org"}[key]
		return value, ok
	}
}

// kernel locks the single Node process, which serves one call at a time.
var kernel sync.Mutex

// templates are those that synth has made, by their settings.
var (
	synthesizing sync.Mutex
	templates    = map[string]template.Template{}
)

// synth returns the template of a stage that exports, with placeholders for programs. Tests share
// the template of the same settings and do not change it.
func synth(tb testing.TB, more map[string]any) template.Template {
	tb.Helper()
	synthesizing.Lock()
	defer synthesizing.Unlock()
	key := fmt.Sprintf("%#v", more)
	if _, known := templates[key]; !known {
		templates[key] = made(tb, given(more))
	}
	return templates[key]
}

// synthOnly is synth without the required setting of exports.
func synthOnly(tb testing.TB, values map[string]any) template.Template {
	tb.Helper()
	return made(tb, only(values))
}

func made(tb testing.TB, given stack.Given) template.Template {
	tb.Helper()
	settings, err := stack.ReadSettings(given)
	if err != nil {
		tb.Fatal(err)
	}
	settings.Build = placeholders(tb, settings.Arch)
	return synthOf(tb, settings)
}

// placeholders returns a folder with a file for each program.
func placeholders(tb testing.TB, arch string) string {
	tb.Helper()
	build := tb.TempDir()
	for _, name := range stack.Programs() {
		folder := filepath.Join(build, arch, name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "bootstrap"), []byte(name), 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	return build
}

func synthOf(tb testing.TB, settings stack.Settings) template.Template {
	tb.Helper()
	kernel.Lock()
	defer kernel.Unlock()
	app := awscdk.NewApp(&awscdk.AppProps{Outdir: jsii.String(tb.TempDir()), AnalyticsReporting: jsii.Bool(false)})
	if _, err := stack.New(app, "Sortie", settings); err != nil {
		tb.Fatal(err)
	}
	t, err := template.Read(filepath.Join(*app.Synth(nil).Directory(), "Sortie.template.json"))
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// stackOf adds the stack of settings to a new app.
func stackOf(tb testing.TB, settings stack.Settings) awscdk.Stack {
	tb.Helper()
	settings.Build = placeholders(tb, settings.Arch)
	kernel.Lock()
	defer kernel.Unlock()
	made, err := stack.New(awscdk.NewApp(&awscdk.AppProps{AnalyticsReporting: jsii.Bool(false)}), "Sortie", settings)
	if err != nil {
		tb.Fatal(err)
	}
	return made.Stack
}

// deployed returns the template of the defaults.
func deployed(tb testing.TB) template.Template {
	tb.Helper()
	return synth(tb, nil)
}

// everything returns the template with all optional parts.
func everything(tb testing.TB) template.Template {
	tb.Helper()
	return synth(tb, map[string]any{
		"outputs": "s3", "tracing": true, "version": "v1.2.3", "domain": "sortie.example.org", "alarmEmail": "watch@example.org",
		"certificate": "arn:aws:acm:eu-west-1:111122223333:certificate/one", "origins": "https://pages.example.org",
		"gradual": true, "firewall": true, "clientLimit": 3000, "canary": "01K9XVBAQZF9EHDRXGBEADTZYY", "backup": true, "budget": 50,
		"kubernetesCluster": "east", "kubernetesNamespaces": "runs,more",
		"traceHeaders": true, "settings": map[string]any{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://otlp.example.org", "OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.1"},
		"reserved": "callback=100,sweep=2", "memory": "sweep=512", "signingKeys": "2,1", "account": "111122223333", "region": "eu-west-1",
	})
}
