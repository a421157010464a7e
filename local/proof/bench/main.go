package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/sortie-dev/sortie/functions/worker"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor"
)

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "worker":
			os.Exit(worker.Main(context.Background(), os.Environ(), os.Stderr))
		case supervisor.Command:
			os.Exit(supervisor.Main(os.Args[2:]))
		case "work":
			os.Exit(workAs(os.Args[2]))
		case "serve":
			os.Exit(serve(os.Args[2:]))
		case "sweep":
			os.Exit(sweepOnce(os.Args[2], os.Args[3]))
		case "streams":
			os.Exit(serveStreams())
		case "proxy":
			os.Exit(serveProxy(os.Args[2]))
		case "starts":
			playStarts(os.Args[2])
		case "relays":
			playRelays(os.Args[2])
		case "load":
			playLoad(os.Args[2])
		case "source":
			os.Exit(source(os.Args[2]))
		}
	}
	only := flag.String("only", "", "measurements, separated by commas; empty is all of them but "+byName+" and growth")
	machine := flag.Bool("json", false, "print the table as a JSON document")
	flag.Parse()
	if err := measure(*only, *machine); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measurement adds rows to the table.
type measurement struct {
	name string
	make func(ctx context.Context, t *table) error
}

func measurements() []measurement {
	return append([]measurement{
		{"runs", measureRuns},
		{"worker", measureWorker},
		{"download", measureDownload},
		{"waiting", measureWaiting},
		{"backlog", measureBacklog},
		{"reads", measureReads},
		{"slowbodies", measureSlowBodies},
		{"heartbeats", measureHeartbeats},
		{"cancels", measureCancels},
		{"firings", measureFirings},
		{"lateness", measureLateness},
		{"fan", measureFan},
		{"admissions", measureAdmissions},
		{"feed", measureFeed},
		{"relay", measureRelay},
		{"streams", measureStreams},
		{"attached", measureAttached},
		{"webhooks", measureWebhooks},
		{"inference", measureInference},
		{"console", measureConsole},
		{"sweep", measureSweep},
		{"simulation", measureSimulation},
		{"interpreter", measureInterpreter},
		{"starts", measureStarts},
		{"binaries", measureBinaries},
		{"proxies", measureProxies},
		{"load", measureLoad},
		{"curves", measureCurves},
	}, growthParts()...)
}

// byName are the measurements that only run if -only names them, as are the parts of growth.
const byName = "proxies, load, curves"

// selected reports whether -only selects a measurement. "growth" selects all of its parts.
func selected(only, name string) bool {
	part := strings.HasPrefix(name, "growth-")
	if only == "" {
		return !strings.Contains(byName, name) && !part
	}
	names := strings.Split(only, ",")
	return slices.Contains(names, name) || part && slices.Contains(names, "growth")
}

func measure(only string, machine bool) error {
	t := &table{}
	for _, m := range measurements() {
		if !selected(only, m.name) {
			continue
		}
		fmt.Fprintf(os.Stderr, "measuring %s ...\n", m.name)
		if err := m.make(context.Background(), t); err != nil {
			return fmt.Errorf("cannot measure %s: %w", m.name, err)
		}
	}
	if machine {
		return t.encode(os.Stdout)
	}
	fmt.Printf("%d cores, %s/%s, %s\n\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	t.print(os.Stdout)
	return nil
}
