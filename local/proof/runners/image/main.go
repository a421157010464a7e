//go:build unix

// Image is the program of the images with which package runners tests containers and pods.
package main

import (
	"os"
	"strings"

	"github.com/sortie-dev/sortie/local/proof/runners/program"
)

func main() {
	env := map[string]string{}
	for _, each := range os.Environ() {
		name, value, _ := strings.Cut(each, "=")
		env[name] = value
	}
	os.Exit(program.Main(os.Args[1:], env))
}
