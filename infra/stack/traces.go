package stack

import (
	"errors"
	"fmt"

	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/base/setting/otel"
)

// tracesSecret is the kind of the secret with the headers of the exporter. Only a stage with
// traceHeaders contains it.
const tracesSecret = "traces"

// tracesGrant returns the grant of the exporter of traces: the variables of OpenTelemetry, and
// the secret with its headers.
func (b *builder) tracesGrant() grant {
	if !b.settings.TraceHeaders {
		return grant{b.settings.Traces, nil}
	}
	return b.secretGrant(tracesSecret, b.settings.Traces)
}

// tracesProblems returns the problems of the variables of OpenTelemetry. Headers are secrets
// and must not be part of a template.
func (s *Settings) tracesProblems() []error {
	var problems []error
	for name := range s.Traces {
		if otel.Secret(name) {
			problems = append(problems, fmt.Errorf("settings.%s: a secret, want traceHeaders, and the headers stored with: sortie secrets put %s --stage %s", name, tracesSecret, s.Stage))
		}
	}
	config, err := otel.Read(setting.Map(s.Traces))
	if err != nil {
		problems = append(problems, fmt.Errorf("settings: %w", err))
	}
	if err == nil && s.TraceHeaders && config.Endpoint == "" {
		problems = append(problems, errors.New("traceHeaders: requires settings.OTEL_EXPORTER_OTLP_ENDPOINT, the collector that gets them"))
	}
	return problems
}
