package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sortie-dev/sortie/local/twin/engines/servers"
	"github.com/sortie-dev/sortie/local/twin/engines/tinymodel"
	"github.com/sortie-dev/sortie/shared/port"
)

// openAI plays the OpenAI API with the official clients for Python and for JavaScript, and the
// stream of a task with the EventSource of npm.
func openAI(ctx context.Context, k *kit) error {
	return k.playOpenAI(ctx, "openai", "mock", "mock")
}

// openAILlama is openAI with a llama-server behind the server, which it installs.
func openAILlama(ctx context.Context, k *kit) error {
	installed, err := servers.Install(ctx, port.EngineLlamaCpp, k.environ, func(format string, args ...any) { fmt.Printf(format+"\n", args...) })
	if err != nil {
		return err
	}
	folder := filepath.Join(k.work, "llama-server")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return fmt.Errorf("cannot create a folder: %w", err)
	}
	server, err := installed.Start(ctx, servers.Options{Folder: folder, Shape: tinymodel.Slow})
	if err != nil {
		return err
	}
	defer server.Kill()
	return k.playOpenAI(ctx, "openai-llamacpp", "llamacpp="+server.URL, server.Model)
}

// playOpenAI starts a server with an engine and runs the clients for its model.
func (k *kit) playOpenAI(ctx context.Context, name, engine, model string) error {
	s, err := k.startWith(ctx, name, []string{"--engine", engine})
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, clientLimit)
	defer cancel()
	for _, each := range []struct{ language, program, file string }{
		{"Python", k.python("python"), "openai_client.py"}, {"JavaScript", k.tools.Node, "openai_client.cjs"},
	} {
		args := []string{each.program, k.config("testdata/clients/" + each.file), s.URL, token, model}
		if err := k.exec(limited, "play the OpenAI API in "+each.language, call{args: args, env: k.nodePath()}); err != nil {
			return fmt.Errorf("the client for %s: %w", each.language, err)
		}
	}
	return nil
}
