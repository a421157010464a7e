package command

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/sortie-dev/sortie/local/proof/localstack/step"
)

// dynamoDB starts a DynamoDB Local, calls use with its endpoint, and then ends it. The tests of
// the adapter make thousands of small calls. These take seconds with DynamoDB Local alone, but
// minutes through LocalStack.
func (a *app) dynamoDB(ctx context.Context, p place, use func(ctx context.Context, endpoint string) error) error {
	jars, err := p.cache.DynamoDB(ctx)
	if err != nil {
		return err
	}
	port, err := step.FreePort(ctx)
	if err != nil {
		return err
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	running, stop := context.WithCancel(ctx)
	ended, gone := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(gone)
		ended <- step.Run(running, "run DynamoDB Local", step.Program{
			Path: p.cache.Tools.Java, Dir: jars, Env: step.Environ(a.Environ), Log: filepath.Join(p.server.Dir, "dynamodb.log"),
			Args: []string{
				"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dsortie.localstack=" + p.server.Dir,
				"-Djava.library.path=" + jars, "-cp", filepath.Join(jars, "*"),
				"com.amazonaws.services.dynamodbv2.local.main.ServerRunner", "-port", strconv.Itoa(port), "-inMemory", "-sharedDb",
			},
		})
	}()
	defer func() {
		stop()
		<-gone
	}()
	if err := a.answers(ctx, address, ended); err != nil {
		return err
	}
	return use(ctx, "http://"+address)
}

// answers waits until the address accepts connections. It returns an error if the program ends.
func (a *app) answers(ctx context.Context, address string, ended <-chan error) error {
	for {
		if connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address); err == nil {
			return connection.Close()
		}
		again, stop := a.Clock.NewTimer(100 * time.Millisecond)
		select {
		case <-again:
		case <-ctx.Done():
			stop()
			return ctx.Err()
		case err := <-ended:
			stop()
			return errors.Join(errors.New("DynamoDB Local did not start"), err)
		}
	}
}

// testTable runs the tests of the DynamoDB adapter. Without Docker they use their own DynamoDB
// Local.
func (a *app) testTable(ctx context.Context, p place, output *lines, packages []string) error {
	env := variables(p, nil)
	if p.docker {
		return a.goTest(ctx, p, output, env, packages...)
	}
	return a.dynamoDB(ctx, p, func(ctx context.Context, endpoint string) error {
		return a.goTest(ctx, p, output, append(env, "AWS_ENDPOINT_URL_DYNAMODB="+endpoint), packages...)
	})
}
