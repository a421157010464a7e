package stack_test

import (
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/contract"
	"github.com/sortie-dev/sortie/shared/limit"
)

func TestEveryFormatOfAnIllCollection(t *testing.T) {
	t.Parallel()
	ill, err := samples.Generate(7, samples.Shape{Entities: 200, Rate: allIlls()})
	if err != nil {
		t.Fatal(err)
	}
	expected := ill.Expect(ill.Roots()[0].PI, samples.ExportOptions{Recursive: true, MaxDepth: 5})
	source := httptest.NewServer(ill.Handler(clock.System{}))
	t.Cleanup(source.Close)
	g := start(t, served{Source: source.URL})
	for _, format := range limit.Formats() {
		status := g.End(g.Export(format, contract.ExportRequest{
			PI: ill.Roots()[0].PI, Options: &contract.ExportOptions{Recursive: new(true)},
		}))
		if status.Status != contract.StatusSuccess {
			t.Fatalf("%s ended as %+v", format, status)
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
			t.Errorf("%s counted %+v, expected %+v", format, counted, expected)
		}
	}
}

// allIlls makes a few entities ill in each way but the ones that take a worker
// minutes to believe; its own tests have those, with a clock to move.
func allIlls() map[samples.Defect]float64 {
	rates := map[samples.Defect]float64{}
	for _, ill := range samples.Defects() {
		if ill != samples.Down && ill != samples.Slow {
			rates[ill] = 0.02
		}
	}
	return rates
}
