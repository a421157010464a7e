package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// nomad is one Nomad agent, server and client, with raw_exec.
type nomad struct {
	process *process
	api     api
	port    int
}

const nomadConfig = `
data_dir  = %q
bind_addr = "127.0.0.1"
advertise {
  http = "127.0.0.1"
  rpc  = "127.0.0.1"
  serf = "127.0.0.1"
}
ports {
  http = %d
  rpc  = %d
  serf = %d
}
server {
  enabled          = true
  bootstrap_expect = 1
}
client {
  enabled = true
  servers = ["127.0.0.1:%[3]d"]
  options = {
    "fingerprint.denylist" = "env_aws,env_gce,env_azure,env_digitalocean"
  }
}
plugin "raw_exec" {
  config {
    enabled = true
  }
}
disable_update_check = true
log_level            = "ERROR"
`

func (*nomad) name() string       { return "Nomad" }
func (n *nomad) server() *process { return n.process }
func (n *nomad) stop()            { n.process.stop() }

func (n *nomad) start(ctx context.Context, folder string) error {
	path, err := program("nomad")
	if err != nil {
		return err
	}
	config := filepath.Join(folder, "nomad.hcl")
	if n.port == 0 {
		var ports [3]int
		for i := range ports {
			if ports[i], err = freePort(); err != nil {
				return err
			}
		}
		n.port = ports[0]
		n.api = api(fmt.Sprintf("http://127.0.0.1:%d", n.port))
		text := fmt.Sprintf(nomadConfig, filepath.Join(folder, "nomad"), ports[0], ports[1], ports[2])
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			return err
		}
	}
	if n.process, err = launch(folder, nil, path, "agent", "-config", config); err != nil {
		return err
	}
	return until(ctx, "nomad has a node", 2*time.Minute, func() bool {
		var nodes []struct {
			Status  string
			Drivers map[string]struct{ Healthy bool }
		}
		_, err := n.api.get(ctx, "/v1/nodes", &nodes)
		return err == nil && len(nodes) == 1 && nodes[0].Status == "ready" && nodes[0].Drivers["raw_exec"].Healthy
	})
}

func (n *nomad) submit(ctx context.Context, w work, id string) (string, error) {
	path, args := w.command(id)
	job := map[string]any{"Job": map[string]any{
		"ID": id, "Type": "batch", "Datacenters": []string{"dc1"},
		"TaskGroups": []any{map[string]any{
			"Name": "work", "EphemeralDisk": map[string]any{"SizeMB": 10},
			"Tasks": []any{map[string]any{
				"Name": "work", "Driver": "raw_exec", "Config": map[string]any{"command": path, "args": args},
				"Resources": map[string]any{"CPU": 10, "MemoryMB": 10}, "LogConfig": map[string]any{"MaxFiles": 1, "MaxFileSizeMB": 1},
			}},
		}},
	}}
	return id, n.api.post(ctx, "/v1/jobs", job)
}

// wait uses Nomad's blocking queries.
func (n *nomad) wait(ctx context.Context, run string) error {
	for index := "0"; ; {
		var allocations []struct{ ClientStatus string }
		next, err := n.api.get(ctx, "/v1/job/"+run+"/allocations?wait=20s&index="+index, &allocations)
		if err != nil {
			return err
		}
		for _, a := range allocations {
			if a.ClientStatus == "complete" {
				return nil
			}
		}
		index = next
	}
}

// api is an address of Nomad's API.
type api string

// get returns the index of the answer.
func (a api) get(ctx context.Context, path string, answer any) (string, error) {
	response, err := call(ctx, "GET", string(a)+path, nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	return response.Header.Get("X-Nomad-Index"), json.NewDecoder(response.Body).Decode(answer)
}

func (a api) post(ctx context.Context, path string, body any) error {
	response, err := call(ctx, "POST", string(a)+path, body)
	if err != nil {
		return err
	}
	return errors.Join(response.Body.Close())
}
