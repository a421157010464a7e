// The export worker of the container image.
package main

import (
	"context"
	"os"

	"github.com/sortie-dev/sortie/functions/worker/program"
)

func main() { os.Exit(program.Main(context.Background(), os.Environ(), os.Stderr)) }
