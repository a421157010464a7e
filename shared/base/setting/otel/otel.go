// Package otel reads the environment variables of OpenTelemetry for the export of traces. The
// export is off unless an endpoint is set.
package otel

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/domain/trace"
)

// Config configures the export of traces.
type Config struct {
	// Endpoint is the URL to which traces are exported; empty switches the export off.
	Endpoint string
	// Headers are the headers of each request. Their values are secrets.
	Headers map[string]string
	// Timeout is the time limit of a request to the endpoint.
	Timeout time.Duration
	// Gzip compresses the requests.
	Gzip bool
	// Resource contains the attributes of the service, always with service.name.
	Resource map[string]string
	Sampler  trace.Sampler
}

// The parts of the names of variables. A variable with tracesPrefix applies only to traces and
// overrides the same variable with prefix.
const (
	prefix       = "OTEL_EXPORTER_OTLP_"
	tracesPrefix = prefix + "TRACES_"
	endpoint     = "ENDPOINT"
	headers      = "HEADERS"

	samplerArgument = "OTEL_TRACES_SAMPLER_ARG"
)

// tracesPath is appended to an endpoint that is for all signals.
const tracesPath = "/v1/traces"

// samplers maps the values of OTEL_TRACES_SAMPLER to samplers. Read replaces a negative ratio
// by the value of samplerArgument.
var samplers = map[string]trace.Sampler{
	"always_on": {Ratio: 1, Alone: true}, "always_off": {Alone: true}, "traceidratio": {Ratio: -1, Alone: true},
	"parentbased_always_on": {Ratio: 1}, "parentbased_always_off": {}, "parentbased_traceidratio": {Ratio: -1},
}

// draft is a Config with the raw values from which Read computes other fields.
type draft struct {
	Config
	disabled                   bool
	exporter, compression      string
	protocol, service, sampler string
	milliseconds               int
	ratio                      float64
}

// settings returns the settings, bound to d. For each variable, lookup decides whether the name
// has tracesPrefix or prefix.
func settings(d *draft, lookup setting.Lookup) []setting.Setting {
	name := func(suffix string) string {
		if value, _ := lookup(tracesPrefix + suffix); value != "" {
			return tracesPrefix + suffix
		}
		return prefix + suffix
	}
	return []setting.Setting{
		setting.Func(name(endpoint), "", "the collector, to whose URL "+tracesPath+" is appended; empty exports nothing", func(text string) error {
			if text != "" && !setting.IsURL(text) { // the error omits the URL, which may contain a password
				return errors.New("malformed URL, want http or https without user, query and fragment")
			}
			d.Endpoint = strings.TrimRight(text, "/")
			return nil
		}),
		pairs(&d.Headers, name(headers), "headers of the requests, such as api-key=…,tenant=a", CheckHeader),
		setting.OneOf(&d.protocol, name("PROTOCOL"), "http/protobuf", "the protocol", "http/protobuf"),
		setting.OneOf(&d.compression, name("COMPRESSION"), "none", "the compression of the requests: none or gzip", "none", "gzip"),
		setting.Integer(&d.milliseconds, name("TIMEOUT"), "10000", "time limit of a request in milliseconds", 1, 600_000),
		setting.Text(&d.service, "OTEL_SERVICE_NAME", "", "the service; empty is that of the attributes, or sortie"),
		pairs(&d.Resource, "OTEL_RESOURCE_ATTRIBUTES", "attributes of the service, such as deployment.environment=prod", nil),
		setting.OneOf(&d.sampler, "OTEL_TRACES_SAMPLER", "parentbased_always_on", "which runs are recorded; parentbased_ follows the client's span, if there is one",
			slices.Sorted(maps.Keys(samplers))...),
		setting.Func(samplerArgument, "1", "the share of the traces that a sampler with a ratio records, from 0 to 1", func(text string) (err error) {
			if d.ratio, err = strconv.ParseFloat(text, 64); err != nil || !(d.ratio >= 0 && d.ratio <= 1) {
				return fmt.Errorf("%q is no ratio, want a number from 0 to 1", text)
			}
			return nil
		}),
		setting.OneOf(&d.exporter, "OTEL_TRACES_EXPORTER", "otlp", "otlp, or none to switch the export off", "otlp", "none"),
		setting.Bool(&d.disabled, "OTEL_SDK_DISABLED", "false", "true switches the export off"),
	}
}

// Settings returns the settings of this package, for documentation.
func Settings() []setting.Setting {
	return settings(&draft{}, func(string) (string, bool) { return "", false })
}

// Secret reports whether the value of a variable is a secret.
func Secret(variable string) bool {
	return variable == prefix+headers || variable == tracesPrefix+headers
}

// Variable reports whether Read reads the variable with this name.
func Variable(name string) bool {
	if suffix, traces := strings.CutPrefix(name, tracesPrefix); traces {
		name = prefix + suffix
	}
	return slices.Contains(setting.Names(Settings()), name)
}

// Read reads the variables. An empty value counts as absent. The error joins all problems, each
// with its variable; it contains no values of headers. If the export is off, Read returns a zero
// Config and no error, because the variables may be for another program.
func Read(lookup setting.Lookup) (Config, error) {
	var d draft
	given, err := setting.Read(lookup, settings(&d, lookup))
	if !given[prefix+endpoint] && !given[tracesPrefix+endpoint] || d.disabled || d.exporter == "none" {
		return Config{}, nil
	}
	if err != nil {
		return Config{}, err
	}
	c := d.Config
	if given[prefix+endpoint] {
		c.Endpoint += tracesPath
	} else if u, err := url.Parse(c.Endpoint); err == nil && u.Path == "" {
		c.Endpoint += "/"
	}
	c.Timeout, c.Gzip = time.Duration(d.milliseconds)*time.Millisecond, d.compression == "gzip"
	if c.Sampler = samplers[d.sampler]; c.Sampler.Ratio < 0 {
		c.Sampler.Ratio = d.ratio
	}
	if c.Resource == nil {
		c.Resource = map[string]string{}
	}
	if d.service == "" {
		d.service = c.Resource[serviceName]
	}
	if c.Resource[serviceName] = d.service; d.service == "" {
		c.Resource[serviceName] = "sortie"
	}
	return c, nil
}

// serviceName is the attribute that OTEL_SERVICE_NAME sets.
const serviceName = "service.name"

// pairs returns a setting that accepts "name=value,..." with percent-encoded values. check, if
// not nil, checks each pair. The errors contain no values.
func pairs(to *map[string]string, name, meaning string, check func(name, value string) error) setting.Setting {
	return setting.Func(name, "", meaning+"; the values are percent-encoded", func(text string) error {
		for i, pair := range strings.Split(text, ",") {
			if strings.TrimSpace(pair) == "" {
				continue
			}
			name, value, found := strings.Cut(pair, "=")
			name = strings.TrimSpace(name)
			value, err := url.PathUnescape(strings.TrimSpace(value))
			if !found || name == "" || err != nil {
				return fmt.Errorf("entry %d is malformed, want NAME=VALUE with a percent-encoded value", i+1)
			}
			if check != nil {
				if err := check(name, value); err != nil {
					return fmt.Errorf("entry %d: %w", i+1, err)
				}
			}
			if *to == nil {
				*to = map[string]string{}
			}
			(*to)[name] = value
		}
		return nil
	})
}

var (
	headerName  = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]+$")
	headerValue = regexp.MustCompile("^[!-~]([ -~]*[!-~])?$")
)

// CheckHeader returns an error for a malformed name or value of an HTTP header. The error does
// not contain the value.
func CheckHeader(name, value string) error {
	switch {
	case !headerName.MatchString(name):
		return errors.New("malformed name of a header")
	case !headerValue.MatchString(value):
		return fmt.Errorf("malformed value of the header %s, want printable ASCII without spaces at its ends", name)
	}
	return nil
}
