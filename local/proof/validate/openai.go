package main

import (
	"context"
	"fmt"
)

// openAI plays the OpenAI API with the official clients for Python and for JavaScript, and the
// stream of a task with the EventSource of npm.
func openAI(ctx context.Context, k *kit) error {
	s, err := k.startWith(ctx, "openai", []string{"--engine", "mock"})
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, clientLimit)
	defer cancel()
	for _, each := range []struct{ language, program, file string }{
		{"Python", k.python("python"), "openai_client.py"}, {"JavaScript", k.tools.Node, "openai_client.cjs"},
	} {
		args := []string{each.program, k.config("testdata/clients/" + each.file), s.URL, token}
		if err := k.exec(limited, "play the OpenAI API in "+each.language, call{args: args, env: k.nodePath()}); err != nil {
			return fmt.Errorf("the client for %s: %w", each.language, err)
		}
	}
	return nil
}
