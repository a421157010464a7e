package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/base/setting/otel"
)

// Given looks up the value of a key: a string, number, bool, list or map.
type Given func(key string) (value any, ok bool)

// ReadSettings reads the keys of Documented from given. An empty value counts as absent. Two
// additional keys are "settings", a map of settings of the service, and "stages", a map from
// stages to such keys. The values of a stage apply to keys that given does not have. A stage
// other than dev must have an entry in "stages", and its settings may be only there. The error
// joins all problems.
func ReadSettings(given Given) (Settings, error) {
	s := Settings{Service: maps.Clone(deployed), Traces: map[string]string{}}
	stage, problems := stageOf(given)
	problems = append(problems, strays(given)...)
	_, err := setting.Read(func(key string) (string, bool) {
		value := text(given, key)
		if value == "" {
			value = text(stage, key)
		}
		return value, value != ""
	}, settings(&s))
	problems = append(problems, err)
	if !s.Stream {
		s.Service[redirectOver] = redirectOverBuffered
	}
	problems = append(problems, s.readService(given, stage)...)
	s.complete()
	problems = append(problems, s.contradictions()...)
	return s, errors.Join(problems...)
}

// StageSettings reads the settings of a stage from the values that cdk.json would contain under
// "stages". It is for apps without that file.
func StageSettings(stage string, values map[string]any) (Settings, error) {
	return ReadSettings(fromMap(map[string]any{"stage": stage, "stages": map[string]any{stage: values}}))
}

func fromMap(values map[string]any) Given {
	return func(key string) (any, bool) { value, ok := values[key]; return value, ok }
}

// FromContext looks up values as the CDK's command line does: first in its arguments of the
// form "-c key=value", then in the object "context" of cdk.json. It ignores other arguments.
func FromContext(file []byte, arguments []string) (Given, error) {
	var document struct {
		Context map[string]any `json:"context"`
	}
	if err := json.Unmarshal(file, &document); err != nil {
		return nil, fmt.Errorf("cdk.json: %w", err)
	}
	values := map[string]any{}
	for i, argument := range arguments {
		pair, ok := strings.CutPrefix(argument, "--context=")
		if (argument == "-c" || argument == "--context") && i+1 < len(arguments) {
			pair, ok = arguments[i+1], true
		}
		if key, value, found := strings.Cut(pair, "="); ok && found {
			values[key] = value
		}
	}
	return FirstOf(fromMap(values), fromMap(document.Context)), nil
}

// stageOf returns the values of the stage in "stages".
func stageOf(given Given) (Given, []error) {
	none := func(string) (any, bool) { return nil, false }
	name := text(given, "stage")
	if name == "" {
		name = defaultStage
	}
	all, problem := mapOf(given, "stages")
	if problem != nil {
		return none, []error{problem}
	}
	entry, ok := all[name]
	switch {
	case !ok && name == defaultStage:
		return none, nil
	case !ok:
		return none, []error{fmt.Errorf("stages.%s: missing in cdk.json, want an object with the settings of the stage", name)}
	}
	values, ok := entry.(map[string]any)
	if !ok {
		return none, []error{fmt.Errorf("stages.%s: want an object", name)}
	}
	var problems []error
	keys := append(setting.Names(Documented()), "settings")
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(keys, key) {
			problems = append(problems, unknown("stages."+name+"."+key, setting.Nearest(key, keys)))
		}
	}
	return fromMap(values), problems
}

// passing lists the keys that describe a single deployment. The other keys are the state of a
// stage: a deployment without them would remove the resources that they added.
var passing = []string{"stage", "stages", "account", "region", "arch", "version", "localstack"}

// strays returns the problems of settings outside the entry of the stage, because the next
// deployment would lose them. The stage dev and LocalStack are not checked.
func strays(given Given) []error {
	name := text(given, "stage")
	if name == "" || name == defaultStage || !slices.Contains([]string{"", "false"}, text(given, "localstack")) {
		return nil
	}
	var problems []error
	for _, key := range slices.Concat(setting.Names(Documented()), []string{"settings"}, serviceNames()) {
		if slices.Contains(passing, key) || slices.Contains(own, key) || text(given, key) == "" {
			continue
		}
		entry := "stages." + name
		if slices.Contains(serviceNames(), key) {
			entry += ".settings"
		}
		problems = append(problems, fmt.Errorf("%s: given by -c or the environment, want it in cdk.json under %s: the next deployment would lose it", key, entry))
	}
	return problems
}

// unknown returns the problem of an undocumented key. meant is the suggested key, or "".
func unknown(key, meant string) error {
	if meant != "" {
		return fmt.Errorf("%s: unknown key, did you mean %s?", key, meant)
	}
	return fmt.Errorf("%s: unknown key", key)
}

// readService reads the settings of the service. It validates them with the function of the
// service.
func (s *Settings) readService(given, stage Given) []error {
	var problems []error
	names := serviceNames()
	for _, from := range []Given{stage, given} {
		values, err := mapOf(from, "settings")
		if err != nil {
			problems = append(problems, err)
		}
		for name, value := range values {
			switch {
			case slices.Contains(own, name):
				problems = append(problems, fmt.Errorf("settings.%s: the stack sets it; see domain", name))
			case otel.Variable(name):
				s.Traces[name] = fmt.Sprint(value)
			case !slices.Contains(names, name):
				problems = append(problems, unknown("settings."+name, setting.Nearest(name, names)))
			default:
				s.Service[name] = fmt.Sprint(value)
			}
		}
	}
	for _, name := range names {
		if value := text(given, name); value != "" && !slices.Contains(own, name) {
			s.Service[name] = value
		}
	}
	config, err := service.Read(setting.Map(s.Service))
	if err != nil {
		problems = append(problems, fmt.Errorf("settings: %w", err))
	} else {
		problems = append(problems, s.workerRateProblem(config.MaxMachines, config.Policy.HeartbeatInterval))
	}
	return append(problems, s.tracesProblems()...)
}

// sourceURL is the setting of the entity API. A stage without it exports nothing.
const sourceURL = "SOURCE_API_URL"

// complete sets the defaults that depend on whether the stage exports.
func (s *Settings) complete() {
	exports := s.Service[sourceURL] != ""
	if s.Outputs == "" {
		s.Outputs = S3
		if exports {
			s.Outputs = R2
		}
	}
	if len(s.FlyApps) == 0 && exports {
		s.FlyApps = []string{service.DefaultApp}
	}
}

// workerRateProblem returns a problem if the heartbeats of all machines would exceed the limit
// of requests.
func (s *Settings) workerRateProblem(machines int, interval time.Duration) error {
	want := int(math.Ceil(float64(machines) / interval.Seconds()))
	if s.WorkerRate == 0 || want <= s.WorkerRate { // 0: it has its own problem
		return nil
	}
	return fmt.Errorf("workerRate: %d requests/s are too few for the heartbeats of %d machines, one each %v; want %d or more, or a longer SORTIE_HEARTBEAT_INTERVAL",
		s.WorkerRate, machines, interval, want)
}

// contradictions returns the problems of keys that are well-formed on their own.
func (s *Settings) contradictions() []error {
	var problems []error
	if (s.Domain == "") != (s.Certificate == "") {
		problems = append(problems, errors.New("domain, certificate: one requires the other"))
	}
	if s.Outputs == S3 && s.OutputsEndpoint != "" && s.LocalStack == "" {
		problems = append(problems, errors.New("outputsEndpoint: not allowed with outputs=s3, which uses the region's own"))
	}
	if len(s.Stage) > stageLength {
		problems = append(problems, fmt.Errorf("stage: %q has %d characters, want at most %d", s.Stage, len(s.Stage), stageLength))
	}
	if len(s.SigningKeys) == 0 {
		problems = append(problems, errors.New("signingKeys: want at least one"))
	}
	problems = append(problems, s.RunnerSettings.contradictions(s.Region, s.Stage)...)
	for _, origin := range s.Origins {
		if u, err := url.Parse(origin); err != nil || u.Host == "" || origin != u.Scheme+"://"+u.Host {
			problems = append(problems, fmt.Errorf("origins: %q is not an origin, want one such as https://pages.example.org", origin))
		}
	}
	if n := len(s.OutputsKeys); n < 1 || n > mostAccessKeys {
		problems = append(problems, fmt.Errorf("outputsKeys: got %d names, want 1 or %d", n, mostAccessKeys))
	}
	problems = append(problems, names("signingKeys", s.SigningKeys), names("outputsKeys", s.OutputsKeys), s.readersProblem())
	return append(problems, s.OptionSettings.contradictions(s)...)
}

var keyName = regexp.MustCompile(`^[A-Za-z0-9]+$`)

// names returns the problems of a list of key names.
func names(key string, list []string) error {
	var problems []error
	for _, name := range list {
		if !keyName.MatchString(name) {
			problems = append(problems, fmt.Errorf("%s: %q is not a name, want letters and digits", key, name))
		}
	}
	return errors.Join(problems...)
}

// text returns the value of a key as text. Lists and maps are joined with commas.
func text(given Given, key string) string {
	value, ok := given(key)
	if !ok || value == nil {
		return ""
	}
	switch v := value.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		parts := make([]string, len(v))
		for i, part := range v {
			parts[i] = fmt.Sprint(part)
		}
		return strings.Join(parts, ",")
	case map[string]any:
		parts := make([]string, 0, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, fmt.Sprintf("%s=%v", name, v[name]))
		}
		return strings.Join(parts, ",")
	}
	return fmt.Sprint(value)
}

// mapOf returns the map of a key. The value may be JSON text.
func mapOf(given Given, key string) (map[string]any, error) {
	value, ok := given(key)
	if !ok || value == nil || value == "" {
		return nil, nil
	}
	if values, ok := value.(map[string]any); ok {
		return values, nil
	}
	var values map[string]any
	if err := json.Unmarshal([]byte(fmt.Sprint(value)), &values); err != nil {
		return nil, fmt.Errorf("%s: want an object", key)
	}
	return values, nil
}

// FromEnvironment looks up values in the environment: a key by its Variable, a setting of the
// service by its own name, account and region also by the variables of the CDK's command line.
func FromEnvironment(lookup func(string) (string, bool)) Given {
	return func(key string) (any, bool) {
		names := []string{Variable(key), map[string]string{
			"account": "CDK_DEFAULT_ACCOUNT", "region": "CDK_DEFAULT_REGION",
		}[key]}
		if slices.Contains(serviceNames(), key) {
			names = []string{key}
		}
		for _, name := range names {
			if value, ok := lookup(name); ok && value != "" && name != "" {
				return value, true
			}
		}
		return nil, false
	}
}

// FirstOf looks up a value in the first of all that has the key.
func FirstOf(all ...Given) Given {
	return func(key string) (any, bool) {
		for _, given := range all {
			if value, ok := given(key); ok {
				return value, true
			}
		}
		return nil, false
	}
}
