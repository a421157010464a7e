package job

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// schema is a part of a JSON Schema.
type schema struct {
	Ref        string            `json:"$ref"`
	AllOf      []schema          `json:"allOf"`
	Properties map[string]schema `json:"properties"`
	Enum       []string          `json:"enum"`
	Maximum    float64           `json:"maximum"`
	MaxLength  int               `json:"maxLength"`
	Pattern    string            `json:"pattern"`
	Defs       map[string]schema `json:"$defs"`
}

func published(t *testing.T) schema {
	t.Helper()
	text, err := os.ReadFile("../../wire/contract/job.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var root schema
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	return root
}

// whole returns the schema with its references and its allOf parts merged.
func (s schema) whole(defs map[string]schema) schema {
	parts := s.AllOf
	if s.Ref != "" {
		parts = append(slices.Clone(parts), defs[strings.TrimPrefix(s.Ref, "#/$defs/")])
	}
	merged := map[string]schema{}
	maps.Copy(merged, s.Properties)
	for _, part := range parts {
		whole := part.whole(defs)
		maps.Copy(merged, whole.Properties)
		s.Enum = append(s.Enum, whole.Enum...)
		s.Pattern += whole.Pattern
	}
	s.Properties = merged
	return s
}

func (s schema) at(defs map[string]schema, path string) schema {
	for name := range strings.SplitSeq(path, ".") {
		s = s.whole(defs).Properties[name]
	}
	return s.whole(defs)
}

func TestSchemaHasTheFields(t *testing.T) {
	t.Parallel()
	root := published(t)
	var compare func(path string, s schema, of reflect.Type)
	compare = func(path string, s schema, of reflect.Type) {
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || of == reflect.TypeFor[Variable]() || of == reflect.TypeFor[Items]() {
			return
		}
		whole := s.whole(root.Defs)
		var names []string
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			names = append(names, name)
			compare(path+"."+name, whole.Properties[name], field.Type)
		}
		slices.Sort(names)
		if got := slices.Sorted(maps.Keys(whole.Properties)); !slices.Equal(got, names) {
			t.Errorf("%s: got the properties %v in the schema, want %v", path, got, names)
		}
	}
	compare("job", root, reflect.TypeFor[Definition]())
}

func TestSchemaHasTheValues(t *testing.T) {
	t.Parallel()
	root := published(t)
	names := func(values any) (texts []string) {
		v := reflect.ValueOf(values)
		for i := range v.Len() {
			texts = append(texts, v.Index(i).String())
		}
		slices.Sort(texts)
		return texts
	}
	for path, want := range map[string][]string{
		"completion":                         names([]spec.Completion{spec.CompletionExit, spec.CompletionCallback}),
		"logs":                               names([]Logs{LogsKeep, LogsDrop}),
		"priority":                           names(spec.Priorities()),
		"bucketCredentials":                  names([]string{spec.BucketVariables, spec.BucketEnvelope}),
		"concurrency.overflow":               names(spec.Overflows()),
		"constraints.onUnavailable":          names([]Unavailable{UnavailableSkip, UnavailableAllow}),
		"actions.onConstraintViolation.type": names(spec.ActionTypes()),
	} {
		got := slices.Clone(root.at(root.Defs, path).Enum)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: got values %v in the schema, want %v", path, got, want)
		}
	}
	known := map[string]bool{}
	for kind := range parameters {
		for name := range parameters[kind] {
			known[name] = true
		}
	}
	for path, want := range map[string][]string{
		"actions.onViolationOf":                    names(spec.ConstraintNames()),
		"actions.onConstraintViolation.parameters": slices.Sorted(maps.Keys(known)),
	} {
		if got := slices.Sorted(maps.Keys(root.at(root.Defs, path).Properties)); !slices.Equal(got, want) {
			t.Errorf("%s: got properties %v in the schema, want %v", path, got, want)
		}
	}
	for path, want := range map[string]int{
		"concurrency.limit": limit.ConcurrentRuns, "concurrency.queueLimit": limit.KeyQueue,
		"constraints.maxConcurrentRuns": limit.ConcurrentRuns, "resources.cpus": maxCPUs, "resources.memoryMB": maxMemoryMB,
		"retryConfig.maxRetries": limit.Attempts - 1, "retryConfig.backoffMultiplier": limit.Multiplier,
		"policy.timeLimitSeconds": int(limit.TimeLimit.Seconds()), "policy.startTimeoutSeconds": int(limit.TokenTTL.Seconds()),
		"policy.cancelGraceSeconds": int(limit.CancelGrace.Seconds()),
	} {
		if got := root.at(root.Defs, path).Maximum; int(got) != want {
			t.Errorf("%s: got maximum %v in the schema, want %d", path, got, want)
		}
	}
	for path, want := range map[string]int{"name": limit.FileName, "image": maxImage, "concurrencyKey": limit.BatchID, "constraints.preRunHook.url": guard.MaxURL} {
		if got := root.at(root.Defs, path).MaxLength; got != want {
			t.Errorf("%s: got maxLength %d in the schema, want %d", path, got, want)
		}
	}
}

// TestDocumentNamesEveryField compares README.md and SENSORS.md with the fields of a definition.
func TestDocumentNamesEveryField(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("README.md")
	if err == nil {
		var sensors []byte
		sensors, err = os.ReadFile("SENSORS.md")
		document = append(document, sensors...)
	}
	if err != nil {
		t.Fatal(err)
	}
	var check func(of reflect.Type)
	check = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || of == reflect.TypeFor[Variable]() || of == reflect.TypeFor[Items]() {
			return
		}
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !strings.Contains(string(document), "`"+name+"`") && !strings.Contains(string(document), "`"+name+": ") {
				t.Errorf("got no field `%s` in README.md, want its meaning", name)
			}
			check(field.Type)
		}
	}
	check(reflect.TypeFor[Definition]())
	for kind, known := range parameters {
		for _, name := range append(slices.Sorted(maps.Keys(known)), string(kind)) {
			if !strings.Contains(string(document), "`"+name+"`") {
				t.Errorf("got no `%s` of actions in README.md, want its meaning", name)
			}
		}
	}
}
