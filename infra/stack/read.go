package stack

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// Given finds what was told under a key: a string, number, bool, list or map.
type Given func(key string) (value any, ok bool)

// Setting is one key of the stack's settings, as its documentation tells it.
type Setting struct {
	Key, Default, Meaning string
}

// Variable is the environment variable that stands for the key: "logDays" is
// STACK_LOG_DAYS.
func (s Setting) Variable() string {
	var name strings.Builder
	name.WriteString("STACK_")
	for _, r := range s.Key {
		if unicode.IsUpper(r) {
			name.WriteByte('_')
		}
		name.WriteRune(unicode.ToUpper(r))
	}
	return name.String()
}

type setting struct {
	Setting
	read func(s *Settings, text string) error
}

var (
	simpleName  = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	hostName    = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$`)
	accountName = regexp.MustCompile(`^[0-9]{12}$`)
	regionName  = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]$`)
	certificate = regexp.MustCompile(`^arn:[a-z-]+:acm:[a-z0-9-]+:[0-9]{12}:certificate/.+$`)
	version     = regexp.MustCompile(`^[A-Za-z0-9._+-]{1,64}$`)
	mail        = regexp.MustCompile(`^[^@\s]+@[^@\s]+$`)
	bucketName  = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
)

// settings are all keys, in the order in which they are documented.
func settings() []setting {
	return []setting{
		matching("stage", defaultStage, "the stage: in the API's path, in names, in tags", simpleName, func(s *Settings) *string { return &s.Stage }),
		matching("account", "", "the account; empty is that of the credentials", accountName, func(s *Settings) *string { return &s.Account }),
		matching("region", "", "the region; empty is that of the credentials", regionName, func(s *Settings) *string { return &s.Region }),
		matching("domain", "", "the API's own host name, at whose root it is; empty leaves it API Gateway's", hostName, func(s *Settings) *string { return &s.Domain }),
		matching("certificate", "", "the ARN of the domain's certificate, of the same region", certificate, func(s *Settings) *string { return &s.Certificate }),
		matching("alarmEmail", "", "who is told of alarms", mail, func(s *Settings) *string { return &s.AlarmEmail }),
		number("logDays", "30", "days that logs are kept", func(s *Settings) *int { return &s.LogDays }, logDays...),
		{Setting{"outputs", string(R2), "where outputs lie: r2, or s3 for two buckets of the stack"}, readOutputs},
		address("outputsEndpoint", "the S3 API of the outputs; empty is R2's, or the region's with s3", func(s *Settings) *string { return &s.OutputsEndpoint }),
		matching("uploadsBucket", "sortie-uploads", "with r2: the bucket that workers write to", bucketName, func(s *Settings) *string { return &s.UploadsBucket }),
		matching("keptBucket", "sortie-kept", "with r2: the bucket that downloads come from", bucketName, func(s *Settings) *string { return &s.KeptBucket }),
		within("outputsKeySerial", "1", "with s3: raised by one, it replaces the access keys", 1, 1000, func(s *Settings) *int { return &s.OutputsKeySerial }),
		list("origins", "", "origins of pages that may call the API; none is CORS off", func(s *Settings) *[]string { return &s.Origins }),
		truth("retain", "true", "whether data stay when the stack is destroyed", func(s *Settings) *bool { return &s.Retain }),
		matching("tableStream", "", "the ARN of the stream of a restored table, to be used instead of one that the stack makes", streamName, func(s *Settings) *string { return &s.TableStream }),
		oneOf("arch", "arm64", "what the functions are built for: arm64 or amd64", func(s *Settings) *string { return &s.Arch }, "arm64", "amd64"),
		{Setting{"localstack", "false", "true, or LocalStack's URL, where the stack is for LocalStack"}, readLocalStack},
		list("signingKeys", "1", "names of the keys of tokens, the one that signs first", func(s *Settings) *[]string { return &s.SigningKeys }),
		perFunction("memory", "", fmt.Sprintf("MB of functions that are to have other than %d, such as sweep=512,download=512", defaultMemory), memoryLeast, memoryMost, func(s *Settings) *map[string]int { return &s.Memory }),
		perFunction("reserved", "", "concurrent calls kept for functions, such as callback=200,sweep=2; AWS refuses to leave fewer than 100 of the account's unreserved, 10 in a new account, so none is reserved by itself", 0, reservedMost, func(s *Settings) *map[string]int { return &s.Reserved }),
		within("clientRate", "200", "requests/s of each method for clients; twice as many in a burst", 1, rateMost, func(s *Settings) *int { return &s.ClientRate }),
		within("workerRate", "2000", "requests/s of each method for workers; twice as many in a burst", 1, rateMost, func(s *Settings) *int { return &s.WorkerRate }),
		truth("stream", "true", "whether downloads are streamed; otherwise they are buffered", func(s *Settings) *bool { return &s.Stream }),
		matching("version", "", "what is deployed, for /healthz, such as a tag; empty leaves Lambda's number", version, func(s *Settings) *string { return &s.Version }),
		truth("tracing", "false", "whether X-Ray traces calls", func(s *Settings) *bool { return &s.Tracing }),
		list("flyApps", defaultApp, "Fly apps that machines are made in", func(s *Settings) *[]string { return &s.FlyApps }),
		address("flyUrl", "the Machines API; empty is the public one", func(s *Settings) *string { return &s.FlyURL }),
	}
}

// Documented lists the keys, for documentation.
func Documented() []Setting {
	var all []Setting
	for _, s := range settings() {
		all = append(all, s.Setting)
	}
	return all
}

// ReadSettings reads what was given; an empty value is an absent one. Beside
// the keys of Documented there are "settings", a map of the service's own
// settings, and "stages", a map from stages to such keys, which count where
// nothing else was given. The error joins every problem there is.
func ReadSettings(given Given) (Settings, error) {
	s := Settings{Service: maps.Clone(deployed)}
	stage, problems := stageOf(given)
	for _, one := range settings() {
		value := text(given, one.Key)
		if value == "" {
			value = text(stage, one.Key)
		}
		if value == "" {
			value = one.Default
		}
		if err := one.read(&s, value); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", one.Key, err))
		}
	}
	if !s.Stream {
		s.Service[redirectOver] = redirectOverBuffered
	}
	problems = append(problems, s.readService(given, stage)...)
	problems = append(problems, s.contradictions()...)
	return s, errors.Join(problems...)
}

// stageOf finds what is given for the stage alone.
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
	own, ok := all[name]
	if !ok {
		return none, nil
	}
	values, ok := own.(map[string]any)
	if !ok {
		return none, []error{fmt.Errorf("stages: what stands under %q is no map", name)}
	}
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if key != "settings" && !slices.ContainsFunc(Documented(), func(s Setting) bool { return s.Key == key }) {
			problems = append(problems, fmt.Errorf("stages: %s: there is no such key", name+"."+key))
		}
	}
	return func(key string) (any, bool) { value, ok := values[key]; return value, ok }, problems
}

// readService reads the settings that are passed through, and has the service
// itself judge them.
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
			case slices.Contains(ours, name):
				problems = append(problems, fmt.Errorf("settings: %s: the stack sets it itself; see domain", name))
			case !slices.Contains(names, name):
				problems = append(problems, fmt.Errorf("settings: %s: there is no such setting", name))
			default:
				s.Service[name] = fmt.Sprint(value)
			}
		}
	}
	for _, name := range names {
		if value := text(given, name); value != "" && !slices.Contains(ours, name) {
			s.Service[name] = value
		}
	}
	if _, err := orchestrator.ConfigFrom(func(name string) (string, bool) { v, ok := s.Service[name]; return v, ok }); err != nil {
		problems = append(problems, fmt.Errorf("settings: %w", err))
	}
	return problems
}

// contradictions are problems of keys that are well-formed by themselves.
func (s *Settings) contradictions() []error {
	var problems []error
	if (s.Domain == "") != (s.Certificate == "") {
		problems = append(problems, errors.New("domain, certificate: one needs the other"))
	}
	if s.Outputs == S3 && s.OutputsEndpoint != "" && s.LocalStack == "" {
		problems = append(problems, errors.New("outputsEndpoint: with outputs=s3 it is the region's own"))
	}
	if s.Service["SOURCE_API_URL"] == "" {
		problems = append(problems, errors.New("settings: SOURCE_API_URL: workers need the entity API that they read"))
	}
	if len(s.Stage) > nameMost {
		problems = append(problems, fmt.Errorf("stage: it has more than %d characters", nameMost))
	}
	if len(s.SigningKeys) == 0 || len(s.FlyApps) == 0 {
		problems = append(problems, errors.New("signingKeys, flyApps: at least one of each is needed"))
	}
	for _, origin := range s.Origins {
		if u, err := url.Parse(origin); err != nil || u.Host == "" || origin != u.Scheme+"://"+u.Host {
			problems = append(problems, fmt.Errorf("origins: %q has to be an origin, such as https://pages.example.org", origin))
		}
	}
	for _, key := range s.SigningKeys {
		if !regexp.MustCompile(`^[A-Za-z0-9]+$`).MatchString(key) {
			problems = append(problems, fmt.Errorf("signingKeys: %q has to be of letters and digits", key))
		}
	}
	return problems
}

// text is what was given under a key, as text; lists are joined by commas.
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

// mapOf is the map that was given under a key, itself or as JSON.
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
		return nil, fmt.Errorf("%s: it has to be a JSON object", key)
	}
	return values, nil
}

// FromEnvironment finds what the environment says: a key under its variable, a
// setting of the service under its own name, account and region also where the
// CDK's command line puts them.
func FromEnvironment(lookup func(string) (string, bool)) Given {
	return func(key string) (any, bool) {
		names := []string{Setting{Key: key}.Variable(), map[string]string{
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

// FirstOf asks one after the other.
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
