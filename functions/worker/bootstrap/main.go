// The export worker of the container image.
package main

import (
	"context"
	"os"

	"github.com/sortie-dev/sortie/functions/worker"
)

func main() { os.Exit(worker.Main(context.Background(), os.Environ(), os.Stderr)) }
