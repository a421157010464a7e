package stack_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/infra/stack"
)

// TestOnlyTheRelayExportsTraces checks which functions have the variables and the secret. In a
// stage without an endpoint no function has them.
func TestOnlyTheRelayExportsTraces(t *testing.T) {
	t.Parallel()
	traces := func(name string) bool { return strings.HasPrefix(name, "OTEL_") || name == "SORTIE_SECRET_TRACES" }
	full := everything(t)
	for _, function := range functionsOf(full) {
		if got, want := slices.ContainsFunc(sortedKeys(functionOf(t, full, function).Variables()), traces), function == "relay"; got != want {
			t.Errorf("%s: got variables of traces %v, want %v", function, got, want)
		}
	}
	named(t, full, "SecretsManager::Secret", "SecretTraces")
	plain := deployed(t)
	if variables := sortedKeys(functionOf(t, plain, "relay").Variables()); slices.ContainsFunc(variables, traces) {
		t.Errorf("got variables %v of the relay, want none of traces", variables)
	}
	for _, s := range plain.Of("SecretsManager::Secret") {
		if strings.Contains(s.ID, "Traces") {
			t.Error("got a secret for traces that the stage does not export")
		}
	}
}

func TestTraceSettingsAreChecked(t *testing.T) {
	t.Parallel()
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for want, values := range map[string]map[string]any{
		"settings: " + endpoint + ": malformed URL":                        {"settings": map[string]any{endpoint: "collector:4318"}},
		"settings: OTEL_EXPORTER_OTLP_PROTOCOL: \"grpc\"":                  {"settings": map[string]any{endpoint: "https://otlp.example.org", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}},
		"settings.OTEL_EXPORTER_OTLP_HEADERS: a secret, want traceHeaders": {"settings": map[string]any{endpoint: "https://otlp.example.org", "OTEL_EXPORTER_OTLP_HEADERS": "api-key=hidden"}},
		"settings.OTEL_EXPORTER_OTLP_TRACES_HEADERS: a secret":             {"settings": map[string]any{"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "api-key=hidden"}},
		"settings.OTEL_EXPORTER_OTLP_INSECURE: unknown":                    {"settings": map[string]any{"OTEL_EXPORTER_OTLP_INSECURE": "true"}},
		"traceHeaders: requires settings." + endpoint:                      {"traceHeaders": true},
	} {
		_, err := stack.ReadSettings(given(values))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%v: got %v, want %q without a value of a header", values, err, want)
		}
	}
	s, err := stack.ReadSettings(given(map[string]any{"settings": map[string]any{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://otlp.example.org/in", "OTEL_TRACES_SAMPLER_ARG": 0.1}}))
	if err != nil || s.Traces["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] == "" || s.Traces["OTEL_TRACES_SAMPLER_ARG"] != "0.1" || s.Service["OTEL_TRACES_SAMPLER_ARG"] != "" {
		t.Errorf("got %v (%v), want the variables of traces alone", s.Traces, err)
	}
}
