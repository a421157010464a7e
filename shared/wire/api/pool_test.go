package api_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/domain/platform"

	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// TestWarmSettingsOfAPool converts the settings of a request and returns them in the response.
func TestWarmSettingsOfAPool(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"min": 1, "max": 3, "aheadSeconds": 300, "maxAgeSeconds": 3600, "image": "worker:v2", "cpus": 2, "memoryMb": 512, "after": "recycle"}`, `{"max": 1}`,
	} {
		var body contract.PoolDefinition
		if err := json.Unmarshal([]byte(`{"limit": 1, "warm": `+text+`}`), &body); err != nil {
			t.Fatal(err)
		}
		d := api.PoolDefinition("a", body)
		if d.Warm == nil || len(d.Faults) > 0 || len(d.Warm.Check(platform.RunnerFly)) > 0 {
			t.Fatalf("got %+v, want valid settings", d)
		}
		if diff := cmp.Diff(body.Warm, api.Pool(pools.View{Pool: platform.Pool{Warm: d.Warm}}).Warm); diff != "" {
			t.Errorf("got other settings (-want +got):\n%s", diff)
		}
	}
	// Numbers that are too large for a duration must be out of range, and must not wrap to
	// valid settings.
	d := api.PoolDefinition("a", contract.PoolDefinition{Warm: &contract.PoolWarm{Max: 1, AheadSeconds: 1 << 40, MaxAgeSeconds: -1 << 40}})
	if found := d.Warm.Check(platform.RunnerFly); len(found) != 2 || found[0].Field != "warm.aheadSeconds" || found[1].Field != "warm.maxAgeSeconds" {
		t.Errorf("got faults %v, want those of both times", found)
	}
}

// TestEverySettingIsOfOneRunner compares the fields of the wire type with the settings of the
// runners, which must have the same names.
func TestEverySettingIsOfOneRunner(t *testing.T) {
	t.Parallel()
	owners := map[string]int{}
	for _, runner := range platform.Runners() {
		settings := platform.NewSettings(runner)
		if settings == nil {
			continue
		}
		for field := range reflect.TypeOf(settings).Elem().Fields() {
			owners[field.Name+" "+field.Tag.Get("json")+" "+field.Type.String()]++
		}
	}
	fields := 0
	for field := range reflect.TypeFor[contract.PoolSettings]().Fields() {
		name := field.Name + " " + field.Tag.Get("json") + " " + field.Type.String()
		if fields++; owners[name] != 1 {
			t.Errorf("got %d runners with the setting %s, want 1", owners[name], name)
		}
	}
	if fields != len(owners) {
		t.Errorf("got %d settings of runners and %d fields, want the same", len(owners), fields)
	}
}
