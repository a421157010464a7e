// The peers program gives the same work to Sortie and to other systems, and prints what each
// needed. It is a module of its own, because it links the others' clients.
//
//	peers schedulers [NAME ...]    programs of the host: Sortie, Temporal, Nomad, River
//	peers streams                  events: Sortie, NATS JetStream, Mercure
//
// SORTIE names the built program of Sortie. PEERS is a folder with the programs temporal,
// nomad and nats-server; a peer without its program is left out by name. Standard output is
// one JSON document.
//
// The peers have no authentication here: every user of the machine can run programs through
// their ports of loopback. Measure on a machine without other users.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch command := append(os.Args, "")[1]; command {
	case "schedulers":
		err = report(measureSchedulers(ctx))
	case "streams":
		err = report(measureStreams(ctx))
	case "temporal-worker":
		err = temporalWorker(os.Args[2])
	case "river-server":
		err = riverServer(ctx, os.Args[2])
	case "mercure-server":
		err = mercureServer(os.Args[2], os.Args[3])
	default:
		err = fmt.Errorf("%q is no command: want schedulers or streams", command)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

// figure is one figure of the report.
type figure struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit,omitempty"`
	Better string  `json:"better,omitempty"`
	Noise  float64 `json:"noise,omitempty"`
}

// result is what the program prints. Table is in Markdown.
type result struct {
	Figures []figure `json:"figures"`
	Table   string   `json:"table"`
	Notes   []string `json:"notes"`
}

func report(r result, err error) error {
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(r)
}

// errLeftOut is returned by a peer whose program is not there.
var errLeftOut = errors.New("left out")

// program returns the path of a peer's program.
func program(name string) (string, error) {
	if name == "sortie" {
		return os.Getenv("SORTIE"), nil
	}
	path := os.Getenv("PEERS") + "/" + name
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%s was not built: %w", name, errLeftOut)
	}
	return path, nil
}
