// Run is an example of a client. It runs a program, prints its log while it runs, and waits for
// its end.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/sortie-dev/sortie/shared/sdk/go/api"
	"github.com/sortie-dev/sortie/shared/sdk/go/client"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "run:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	c, err := client.New(client.FromEnv(os.Getenv)) // SORTIE_URL and SORTIE_TOKEN
	if err != nil {
		return err
	}
	run, err := c.Runs.Create(ctx, &api.RunDefinition{Image: "exec:/bin/echo", Command: []string{"hello"}})
	if err != nil {
		return err
	}
	for line, err := range c.Tasks.FollowLogs(ctx, run.TaskID, client.LogQuery{}) {
		if err != nil {
			return err
		}
		fmt.Print(string(line.Data))
	}
	ended, err := c.Runs.Wait(ctx, run.RunID)
	if err != nil {
		return err
	}
	fmt.Println(ended.State)
	return nil
}
