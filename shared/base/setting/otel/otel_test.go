package otel_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/base/setting/otel"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/domain/trace"
)

const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"

func TestVariablesOfTheSpecification(t *testing.T) {
	t.Parallel()
	plain := func(change func(*otel.Config)) otel.Config {
		c := otel.Config{
			Endpoint: "http://127.0.0.1:4318/v1/traces", Timeout: 10 * time.Second,
			Resource: map[string]string{"service.name": "sortie"}, Sampler: trace.Sampler{Ratio: 1},
		}
		change(&c)
		return c
	}
	for name, row := range map[string]struct {
		values map[string]string
		want   otel.Config
	}{
		"nothing":            {nil, otel.Config{}},
		"no endpoint":        {map[string]string{"OTEL_SERVICE_NAME": "a", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, otel.Config{}},
		"disabled":           {map[string]string{endpoint: "http://127.0.0.1:4318", "OTEL_SDK_DISABLED": "true"}, otel.Config{}},
		"no exporter":        {map[string]string{endpoint: "http://127.0.0.1:4318", "OTEL_TRACES_EXPORTER": "none"}, otel.Config{}},
		"endpoint":           {map[string]string{endpoint: "http://127.0.0.1:4318/"}, plain(func(*otel.Config) {})},
		"endpoint of a path": {map[string]string{endpoint: "https://example.org/otlp"}, plain(func(c *otel.Config) { c.Endpoint = "https://example.org/otlp/v1/traces" })},
		"endpoint of traces": {
			map[string]string{endpoint: "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://example.org/in"},
			plain(func(c *otel.Config) { c.Endpoint = "https://example.org/in" }),
		},
		"endpoint of traces without a path": {
			map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://example.org"},
			plain(func(c *otel.Config) { c.Endpoint = "https://example.org/" }),
		},
		"headers": {
			map[string]string{endpoint: "http://127.0.0.1:4318", "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%20b, x = c,"},
			plain(func(c *otel.Config) { c.Headers = map[string]string{"api-key": "a b", "x": "c"} }),
		},
		"resource": {
			map[string]string{endpoint: "http://127.0.0.1:4318", "OTEL_RESOURCE_ATTRIBUTES": "service.name=a,deployment.environment=prod"},
			plain(func(c *otel.Config) {
				c.Resource = map[string]string{"service.name": "a", "deployment.environment": "prod"}
			}),
		},
		"name wins": {
			map[string]string{endpoint: "http://127.0.0.1:4318", "OTEL_RESOURCE_ATTRIBUTES": "service.name=a", "OTEL_SERVICE_NAME": "b"},
			plain(func(c *otel.Config) { c.Resource["service.name"] = "b" }),
		},
		"variables of traces win": {
			map[string]string{
				endpoint: "http://127.0.0.1:4318", "OTEL_EXPORTER_OTLP_TIMEOUT": "5", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "2500",
				"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": "gzip",
			},
			plain(func(c *otel.Config) { c.Timeout, c.Gzip = 2500*time.Millisecond, true }),
		},
		"ratio": {
			map[string]string{endpoint: "http://127.0.0.1:4318", "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"},
			plain(func(c *otel.Config) { c.Sampler = trace.Sampler{Ratio: 0.25, Alone: true} }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := otel.Read(setting.Map(row.values))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestProblemsHaveNoSecrets checks that the error names each invalid variable and contains no
// secret.
func TestProblemsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		endpoint: "https://user:hidden@example.org", "OTEL_EXPORTER_OTLP_HEADERS": "api-key", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
		"OTEL_TRACES_SAMPLER": "jaeger_remote", "OTEL_TRACES_SAMPLER_ARG": "NaN", "OTEL_RESOURCE_ATTRIBUTES": "a",
		"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "10s", "OTEL_EXPORTER_OTLP_COMPRESSION": "zstd",
	}
	_, err := otel.Read(setting.Map(values))
	for name := range values {
		if err == nil || !strings.Contains(err.Error(), name+": ") {
			t.Errorf("got %v, want %s in it", err, name)
		}
	}
	if err != nil && strings.Contains(err.Error(), "hidden") {
		t.Errorf("got %v, want no password", err)
	}
	for _, header := range []string{"hidden", "=hidden", "api key=hidden", "api-key=%zzhidden"} {
		values["OTEL_EXPORTER_OTLP_HEADERS"] = header
		if _, err := otel.Read(setting.Map(values)); err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: got %v, want an error without the value", header, err)
		}
	}
}

func TestSamplersFollowTheSpecification(t *testing.T) {
	t.Parallel()
	recorded, dropped := run.Run{TraceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}, run.Run{TraceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"}
	for name, want := range map[string]string{ // results: without a client's span, with a sampled one, with one that is not sampled
		"always_on": "true true true", "always_off": "false false false",
		"parentbased_always_on": "true true false", "parentbased_always_off": "false true false", "parentbased_traceidratio": "false true false",
		"traceidratio": "false false false",
	} {
		c, err := otel.Read(setting.Map(map[string]string{endpoint: "http://127.0.0.1:1", "OTEL_TRACES_SAMPLER": name, "OTEL_TRACES_SAMPLER_ARG": "0"}))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range []run.Run{{}, recorded, dropped} {
			got = append(got, map[bool]string{true: "true", false: "false"}[c.Sampler.Samples(r)])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %v, want %s", name, got, want)
		}
	}
	half, n := trace.Sampler{Ratio: 0.5}, 0
	for i := range 1000 {
		if half.Samples(run.Run{ID: strings.Repeat("x", i)}) {
			n++
		}
	}
	if n < 400 || n > 600 {
		t.Errorf("got %d of 1000 runs, want about half", n)
	}
}
