package stack_test

import (
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func TestEveryFormatOfADefectiveCollection(t *testing.T) {
	t.Parallel()
	defective, err := samples.Generate(7, samples.Shape{Entities: 200, Rate: allDefects()})
	if err != nil {
		t.Fatal(err)
	}
	expected := defective.Expect(defective.Roots()[0].PI, samples.ExportOptions{Recursive: true, MaxDepth: 5})
	source := httptest.NewServer(defective.Handler(clock.System{}))
	t.Cleanup(source.Close)
	g := start(t, served{Source: source.URL})
	for _, format := range limit.Formats() {
		status := g.End(g.Export(format, contract.ExportRequest{
			PI: defective.Roots()[0].PI, Options: &contract.ExportOptions{Recursive: new(true)},
		}))
		if status.Status != contract.StatusSuccess {
			t.Fatalf("%s: got %+v, want a success", format, status)
		}
		var counted struct {
			Exported   int `json:"entities_exported"`
			Failed     int `json:"entities_failed"`
			Incomplete int `json:"entities_incomplete"`
		}
		if err := json.Unmarshal(status.Metrics, &counted); err != nil {
			t.Fatal(err)
		}
		if counted.Exported != expected.Exported || counted.Failed != expected.Failed || counted.Incomplete != expected.Incomplete {
			t.Errorf("%s: got %+v, want %+v", format, counted, expected)
		}
	}
}

// allDefects returns a low rate for each defect. It leaves out those that a worker retries for
// minutes; the worker's tests cover them with a virtual clock.
func allDefects() map[samples.Defect]float64 {
	rates := map[samples.Defect]float64{}
	for _, defect := range samples.Defects() {
		if defect != samples.Down && defect != samples.Slow {
			rates[defect] = 0.02
		}
	}
	return rates
}
