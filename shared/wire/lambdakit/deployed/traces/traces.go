// Package traces makes the exporter of traces of a deployed Sortie. It is separate from package
// deployed because only one function needs the exporter, which links protobuf.
package traces

import (
	"context"

	"github.com/sortie-dev/sortie/shared/adapter/otlp"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/base/setting/otel"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// stageAttribute is the resource attribute with the stage (semantic conventions of
// OpenTelemetry).
const stageAttribute = "deployment.environment.name"

// Exporter returns the exporter that OpenTelemetry's variables configure. Without an endpoint
// it returns one that exports nothing. With SORTIE_SECRET_TRACES it sends the headers of that
// secret, which may be rotated while the process runs. Exporter makes no network call.
func Exporter(p *process.Process) port.Traces {
	config, err := otel.Read(func(name string) (string, bool) {
		value := p.Option(name, "")
		return value, value != ""
	})
	p.Check(err)
	if config.Endpoint == "" {
		return off{}
	}
	if config.Resource[stageAttribute] == "" {
		config.Resource[stageAttribute] = p.Stage
	}
	c := otlp.Config{Config: config, Version: p.Version(), Clock: p.Clock(), Log: p.Log}
	if id := p.Option("SORTIE_SECRET_TRACES", ""); id != "" {
		secret, err := secrets.Open[secrets.Traces](p.AWS(), id, secrets.Config{Clock: p.Clock(), Log: p.Log})
		p.Check(err)
		c.Secrets = func(ctx context.Context) (map[string]string, error) {
			document, err := secret.Get(ctx)
			return document.Headers, err
		}
	}
	return otlp.New(c)
}

// off is an exporter that exports nothing.
type off struct{}

func (off) Committed(context.Context, run.Run, []run.Event) {}
func (off) Flush(context.Context)                           {}
func (off) Dropped() int                                    { return 0 }
