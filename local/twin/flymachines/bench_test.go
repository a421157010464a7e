package flymachines_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/superfly/fly-go"
	"github.com/superfly/fly-go/flaps"
	"github.com/superfly/fly-go/tokens"

	"github.com/sortie-dev/sortie/local/twin/flymachines"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// BenchmarkMachines measures the whole life of machines, created by the real client, 50
// concurrently.
func BenchmarkMachines(b *testing.B) {
	nothing := func(context.Context, flymachines.Program, io.Writer) int { return 0 }
	for name, test := range map[string]struct {
		starter flymachines.Starter
		program string
	}{
		"functions": {flymachines.Functions{Clock: clock.System{}, Programs: map[string]flymachines.Function{"nothing": nothing}}, "nothing"},
		"processes": {processes(b), "/bin/true"},
	} {
		b.Run(name, func(b *testing.B) {
			cfg := config(b, test.starter)
			cfg.Images = map[string][]string{image: {test.program}}
			cfg.Log = slog.New(slog.DiscardHandler)
			server, err := flymachines.Open(cfg)
			if err != nil {
				b.Fatal(err)
			}
			web := httptest.NewServer(server)
			defer web.Close()
			base, err := url.Parse(web.URL)
			if err != nil {
				b.Fatal(err)
			}
			transport := &http.Transport{MaxIdleConnsPerHost: 100}
			defer transport.CloseIdleConnections()
			client, err := flaps.NewWithOptions(b.Context(), flaps.NewClientOpts{
				Tokens: tokens.Parse(token), Transport: redirect{base, transport},
			})
			if err != nil {
				b.Fatal(err)
			}
			in := fly.LaunchMachineInput{Config: &fly.MachineConfig{Image: image, AutoDestroy: true}}
			b.SetParallelism(25) // on two cores
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					made, err := client.Launch(b.Context(), app, in)
					if err == nil {
						err = client.Wait(b.Context(), app, made.ID, flaps.WithWaitStates("destroyed"), flaps.WithWaitTimeout(time.Minute))
					}
					if err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "machines/s")
			if err := server.Stop(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
}
