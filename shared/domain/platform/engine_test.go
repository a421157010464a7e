package platform_test

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// secureOnly permits only https.
func secureOnly(text string) error {
	if !strings.HasPrefix(text, "https://") {
		return errors.New("want https")
	}
	return nil
}

func enginePlace(change func(*platform.EnginePlace)) platform.EnginePlace {
	e := platform.EnginePlace{
		Kind: platform.EngineVLLM, Model: "llama-3.1:8b", Slots: 4,
		Replicas: []platform.EngineReplica{{ID: "a", URL: "https://a.example"}, {ID: "b", URL: "https://b.example", MetricsURL: "https://b.example/metrics"}},
	}
	change(&e)
	return e
}

func TestEnginePlacesOfADeployment(t *testing.T) {
	t.Parallel()
	offer := platform.EngineOffer{CheckURL: secureOnly}
	if f := enginePlace(func(*platform.EnginePlace) {}).Check(offer); len(f) != 0 {
		t.Errorf("got %v, want no fault", f)
	}
	mock := enginePlace(func(e *platform.EnginePlace) {
		e.Kind, e.Replicas = platform.EngineMock, make([]platform.EngineReplica, 2)
	}).WithIDs()
	if f := mock.Check(platform.EngineOffer{Mock: true}); len(f) != 0 || mock.Replicas[1].ID != "r2" || mock.Limit() != 8 {
		t.Errorf("got %v of %+v with limit %d, want a valid mock with 8 slots", f, mock, mock.Limit())
	}
	for name, row := range map[string]struct {
		change func(*platform.EnginePlace)
		code   fault.Code
		field  string
	}{
		"unknown kind": {func(e *platform.EnginePlace) { e.Kind = "gpt" }, fault.InvalidRequest, "engine.kind"},
		"mock elsewhere": {func(e *platform.EnginePlace) {
			e.Kind, e.Replicas = platform.EngineMock, []platform.EngineReplica{{ID: "a"}}
		}, fault.Unprocessable, "engine.kind"},
		"negative deadline":      {func(e *platform.EnginePlace) { e.DeadlineMS = -1 }, fault.InvalidRequest, "engine.deadlineMs"},
		"deadline of two days":   {func(e *platform.EnginePlace) { e.DeadlineMS = 172_800_000 }, fault.InvalidRequest, "engine.deadlineMs"},
		"limit below a deadline": {func(e *platform.EnginePlace) { e.DeadlineMS, e.LongestDeadlineMS = 2, 1 }, fault.InvalidRequest, "engine.maxDeadlineMs"},
		"limit of two days":      {func(e *platform.EnginePlace) { e.LongestDeadlineMS = 172_800_000 }, fault.InvalidRequest, "engine.maxDeadlineMs"},
		"no model":               {func(e *platform.EnginePlace) { e.Model = "" }, fault.InvalidRequest, "engine.model"},
		"malformed model":        {func(e *platform.EnginePlace) { e.Model = "a/b" }, fault.InvalidRequest, "engine.model"},
		"no slots":               {func(e *platform.EnginePlace) { e.Slots = 0 }, fault.InvalidRequest, "engine.slots"},
		"many slots":             {func(e *platform.EnginePlace) { e.Slots = platform.MaxReplicaSlots + 1 }, fault.InvalidRequest, "engine.slots"},
		"deterministic slots":    {func(e *platform.EnginePlace) { e.Deterministic = true }, fault.InvalidRequest, "engine.slots"},
		"no replicas":            {func(e *platform.EnginePlace) { e.Replicas = nil }, fault.InvalidRequest, "engine.replicas"},
		"many replicas":          {func(e *platform.EnginePlace) { e.Replicas = make([]platform.EngineReplica, platform.MaxReplicas+1) }, fault.InvalidRequest, "engine.replicas"},
		"malformed replica":      {func(e *platform.EnginePlace) { e.Replicas[1].ID = "a b" }, fault.InvalidRequest, "engine.replicas.1.id"},
		"replica twice":          {func(e *platform.EnginePlace) { e.Replicas[1].ID = "a" }, fault.InvalidRequest, "engine.replicas.1.id"},
		"missing URL":            {func(e *platform.EnginePlace) { e.Replicas[1].URL = "" }, fault.InvalidRequest, "engine.replicas.1.url"},
		"URL that is refused":    {func(e *platform.EnginePlace) { e.Replicas[0].URL = "http://a.example" }, fault.InvalidRequest, "engine.replicas.0.url"},
		"URL with a query":       {func(e *platform.EnginePlace) { e.Replicas[0].URL += "?a=b" }, fault.InvalidRequest, "engine.replicas.0.url"},
		"URL twice":              {func(e *platform.EnginePlace) { e.Replicas[1].URL = e.Replicas[0].URL }, fault.InvalidRequest, "engine.replicas.1.url"},
		"metrics that are plain": {func(e *platform.EnginePlace) { e.Replicas[1].MetricsURL = "http://a" }, fault.InvalidRequest, "engine.replicas.1.metricsUrl"},
	} {
		if f := enginePlace(row.change).Check(offer); len(f) != 1 || f[0].Code != row.code || f[0].Field != row.field {
			t.Errorf("%s: got %v, want %s of %s", name, f, row.code, row.field)
		}
	}
	withAddress := platform.EnginePlace{Kind: platform.EngineMock, Model: "m", Slots: 1, Replicas: []platform.EngineReplica{{ID: "a", URL: "https://a.example"}}}
	if f := withAddress.Check(platform.EngineOffer{Mock: true}); len(f) != 1 || f[0].Field != "engine.replicas.0.url" {
		t.Errorf("got %v of a mock with an address, want its URL refused", f)
	}
	all := enginePlace(func(e *platform.EnginePlace) {
		e.Kind, e.Model, e.Slots, e.Replicas[0].ID, e.Replicas[1].URL = "", "", 0, "", ""
	})
	var fields []string
	for _, f := range all.Check(offer) {
		fields = append(fields, f.Field)
	}
	if want := []string{"engine.kind", "engine.model", "engine.slots", "engine.replicas.0.id", "engine.replicas.1.url"}; !slices.Equal(fields, want) {
		t.Errorf("got the faults of %v, want those of %v", fields, want)
	}
}

// TestPlacesOfServices checks the place of a service with OpenAI's API.
func TestPlacesOfServices(t *testing.T) {
	t.Parallel()
	offer := platform.EngineOffer{CheckURL: func(text string) error {
		if strings.Contains(text, "10.0.0.1") {
			return errors.New("not public")
		}
		return nil
	}}
	for name, row := range map[string]struct {
		change func(*platform.EnginePlace)
		field  string
	}{
		"valid":                     {func(*platform.EnginePlace) {}, ""},
		"name of the model":         {func(e *platform.EnginePlace) { e.EngineModel = "vendor/large" }, ""},
		"no secret":                 {func(e *platform.EnginePlace) { e.SecretRef = "" }, "engine.secretRef"},
		"malformed secret":          {func(e *platform.EnginePlace) { e.SecretRef = "../clients" }, "engine.secretRef"},
		"secret of another engine":  {func(e *platform.EnginePlace) { e.Kind = platform.EngineVLLM }, "engine.secretRef"},
		"address without TLS":       {func(e *platform.EnginePlace) { e.Replicas[0].URL = "http://a.example" }, "engine.replicas.0.url"},
		"address that is private":   {func(e *platform.EnginePlace) { e.Replicas[0].URL = "https://10.0.0.1" }, "engine.replicas.0.url"},
		"address of metrics":        {func(e *platform.EnginePlace) { e.Replicas[0].MetricsURL = "https://a.example" }, "engine.replicas.0.metricsUrl"},
		"control character in name": {func(e *platform.EnginePlace) { e.EngineModel = "a\nb" }, "engine.engineModel"},
		"long name":                 {func(e *platform.EnginePlace) { e.EngineModel = strings.Repeat("a", 256) }, "engine.engineModel"},
		"machines": {func(e *platform.EnginePlace) {
			e.Replicas, e.Machines = nil, &platform.EngineMachines{Job: "server", Count: 1, Port: 80}
		}, "engine.machines"},
	} {
		e := platform.EnginePlace{
			Kind: platform.EngineOpenAI, Model: "cloud", SecretRef: "provider-key", Slots: 8,
			Replicas: []platform.EngineReplica{{ID: "a", URL: "https://a.example/v1"}},
		}
		row.change(&e)
		found := e.Check(offer)
		if row.field == "" && len(found) != 0 || row.field != "" && (len(found) != 1 || found[0].Field != row.field || found[0].Code != fault.InvalidRequest) {
			t.Errorf("%s: got %v, want a fault of %q", name, found, row.field)
		}
	}
}

// TestSlotsWithoutANumber checks the slots of a place that leaves them to its engines.
func TestSlotsWithoutANumber(t *testing.T) {
	t.Parallel()
	auto := enginePlace(func(e *platform.EnginePlace) { e.AutoSlots = true })
	before, moved := auto, auto
	before.Slots = 9
	moved.Slots, moved.Replicas = 9, []platform.EngineReplica{{ID: "a", URL: "https://c.example"}}
	for name, row := range map[string]struct {
		place    platform.EnginePlace
		reported int
		before   *platform.EnginePlace
		want     int
	}{
		"a number of its own":            {enginePlace(func(*platform.EnginePlace) {}), 7, &before, 4},
		"reported":                       {auto, 7, &before, 7},
		"many":                           {auto, 5000, nil, platform.MaxReplicaSlots},
		"not reported":                   {auto, 0, nil, 64},
		"not reported any more":          {auto, 0, &before, 9},
		"not reported by other replicas": {auto, 0, &moved, 64},
	} {
		if got := row.place.WithSlots(row.reported, row.before).Slots; got != row.want {
			t.Errorf("%s: got %d slots, want %d", name, got, row.want)
		}
	}
	for kind, want := range map[platform.EngineKind]int{platform.EngineLlamaCpp: 1, platform.EngineOpenAI: 16, platform.EngineTGI: 64, platform.EngineMock: 1} {
		if got := kind.DefaultSlots(); got != want {
			t.Errorf("%s: got %d slots, want %d", kind, got, want)
		}
	}
}

func TestNameOfAModelInRequests(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		kind                platform.EngineKind
		pool, catalog, want string
	}{
		{platform.EngineVLLM, "", "", ""},
		{platform.EngineVLLM, "", "hf/name", "hf/name"},
		{platform.EngineVLLM, "lora", "hf/name", "lora"},
		{platform.EngineOpenAI, "", "", "cloud"},
		{platform.EngineOpenAI, "vendor/large", "hf/name", "vendor/large"},
	} {
		e := platform.EnginePlace{Kind: row.kind, Model: "cloud", EngineModel: row.pool}
		if got := e.ModelName(row.catalog); got != row.want {
			t.Errorf("%+v: got %q, want %q", row, got, row.want)
		}
	}
}

func TestPoolOfAnEngineRunsInferenceAlone(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	runner := platform.Pool{ID: "machines", Version: 1}
	e := enginePlace(func(*platform.EnginePlace) {})
	served := runner.Serving(&e, "ann", now)
	if served.Engine == nil || served.UpdatedBy != "ann" {
		t.Fatalf("got %+v, want the engine", served)
	}
	same := e.WithIDs()
	if again := served.Serving(&same, "bob", now.Add(time.Hour)); !reflect.DeepEqual(again, served) {
		t.Errorf("the same engine: got %+v, want no change", again)
	}
	for kind, wants := range map[string]platform.Pool{spec.KindInference: served, spec.KindJob: runner, spec.KindExport: runner} {
		for _, p := range []platform.Pool{served, runner} {
			f := platform.CheckKind(p, kind)
			if takes := p.Engine == wants.Engine; takes != (f == nil) {
				t.Errorf("%s in a pool with engine %v: got %v", kind, p.Engine, f)
			} else if f != nil && (f.Code != fault.Unprocessable || f.Field != "pool") {
				t.Errorf("%s: got %v, want Unprocessable with the field pool", kind, f)
			}
		}
	}
}
