//go:build browser

package browser_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// limit limits the time of one step in the browser, and of a server's start.
const limit = time.Minute

// kit has what the tests share: the programs, the browser and a server with a world.
type kit struct {
	work string
	// axe is the text of axe-core.
	axe string
	// browser is the context of a running Chromium.
	browser context.Context
	shared  func() (*world, error)
}

var tools kit

func TestMain(m *testing.M) {
	os.Exit(testMain(m))
}

func testMain(m *testing.M) int {
	chromium, err := findChromium()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		if os.Getenv("CI") != "" {
			return 1
		}
		fmt.Fprintln(os.Stderr, "The tests of the console in a browser are left out.")
		return 0
	}
	end, err := prepare(chromium)
	defer end()
	if err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		return 1
	}
	return m.Run()
}

// findChromium returns the path of a Chromium. The variable CHROMIUM selects one.
func findChromium() (string, error) {
	names := []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"}
	if name := os.Getenv("CHROMIUM"); name != "" {
		names = []string{name}
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("missing browser %s: apt-get install chromium-headless-shell, or set CHROMIUM to the path of a Chromium", strings.Join(names, ", "))
}

// prepare builds the programs and starts the browser. end frees everything.
func prepare(chromium string) (end func(), err error) {
	end = func() {}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if tools.axe, err = axe(ctx); err != nil {
		return end, err
	}
	if tools.work, err = os.MkdirTemp("", "sortie-browser-"); err != nil {
		return end, fmt.Errorf("cannot create a folder: %w", err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", tools.work+"/", "./local/sortie", "./shared/sdk/go/sortie-exec")
	build.Dir = filepath.Join("..", "..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return end, fmt.Errorf("cannot build the command line: %w\n%s", err, output)
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(filepath.Join(tools.work, "profile")),
		chromedp.Flag("lang", "en-GB"), chromedp.Flag("force-color-profile", "srgb"), chromedp.WSURLReadTimeout(limit))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	browser, quit := chromedp.NewContext(allocator)
	tools.browser = browser
	var started []*server
	var mu sync.Mutex
	tools.shared = sync.OnceValues(func() (*world, error) {
		s, err := startServer("shared", "SORTIE_HOOK_ALLOW=127.0.0.1")
		if err != nil {
			return nil, err
		}
		mu.Lock()
		started = append(started, s)
		mu.Unlock()
		return populate(s)
	})
	end = func() {
		quit()
		stop()
		for _, s := range started {
			s.stop(os.Interrupt)
		}
		_ = os.RemoveAll(tools.work)
	}
	if err := chromedp.Do(browser); err != nil {
		return end, fmt.Errorf("cannot start %s: %w", chromium, err)
	}
	return end, nil
}

// server is a sortie dev with a data folder of its own.
type server struct {
	URL       string `json:"url"`
	Data      string `json:"data"`
	TokenFile string `json:"tokenFile"`
	// token is a token with all scopes.
	token    string
	settings []string
	command  *exec.Cmd
}

// startServer starts a server with further environment variables.
func startServer(name string, settings ...string) (*server, error) {
	s := &server{Data: filepath.Join(tools.work, name), settings: settings}
	return s, s.start("127.0.0.1:0")
}

// start starts the server at an address. After an end it continues with the same data.
func (s *server) start(addr string) error {
	s.command = exec.Command(s.program(), "dev", "--addr", addr, "--data", s.Data, "--json", "--engine", "mock")
	s.command.Env = slices.Concat(os.Environ(), []string{"AUTH_TOKEN=", "SORTIE_URL="}, s.settings)
	log, err := os.OpenFile(s.Data+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot create a log: %w", err)
	}
	defer func() { _ = log.Close() }() // the server keeps its own descriptor
	s.command.Stderr = log
	output, err := s.command.StdoutPipe()
	if err == nil {
		err = s.command.Start()
	}
	if err != nil {
		return fmt.Errorf("cannot start a server: %w", err)
	}
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, s)
	}
	if err != nil {
		return fmt.Errorf("got %q from the server, want its addresses: %w", line, err)
	}
	text, err := os.ReadFile(s.TokenFile)
	s.token = strings.TrimSpace(string(text))
	return err
}

func (s *server) program() string { return filepath.Join(tools.work, "sortie") }

// stop ends the server with a signal.
func (s *server) stop(signal os.Signal) {
	_ = s.command.Process.Signal(signal)
	_ = s.command.Wait() // an interrupted server returns an error
}

// kill ends the server as a crash does.
func (s *server) kill() { s.stop(syscall.SIGKILL) }

// cli runs a command of the command line and returns its output.
func (s *server) cli(args ...string) (string, error) {
	command := exec.Command(s.program(), args...)
	command.Env = slices.Concat(os.Environ(), []string{"SORTIE_URL=" + s.URL, "SORTIE_TOKEN=" + s.token})
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("sortie %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return strings.TrimSpace(string(output)), nil
}

// object is a JSON object of the API.
type object map[string]any

// call sends a request to the API and returns the response.
func (s *server) call(method, path string, body any) (object, error) {
	var text bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&text).Encode(body); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequest(method, s.URL+path, &text) //nolint:noctx // the test has a time limit
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var answer object
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("%s %s: %s: %w", method, path, response.Status, err)
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return nil, fmt.Errorf("%s %s: %s: %v", method, path, response.Status, answer)
	}
	return answer, nil
}

// shell starts a run of a shell script and returns its task id. more are further members of the
// definition.
func (s *server) shell(script string, more object) (string, error) {
	definition := object{"image": "exec:/bin/sh", "command": []string{"-c", script}}
	for name, value := range more {
		definition[name] = value
	}
	answer, err := s.call(http.MethodPost, "/v1/runs", definition)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(answer["taskId"]), nil
}

// await waits until a run has a state.
func (s *server) await(id string, want ...string) error {
	return wait(fmt.Sprintf("state %v of run %s", want, id), func() (bool, error) {
		answer, err := s.call(http.MethodGet, "/v1/runs/"+id, nil)
		return err == nil && slices.Contains(want, fmt.Sprint(answer["state"])), err
	})
}

var errLimit = errors.New("time limit exceeded")

// wait repeats a check until it succeeds, fails or the limit is over.
func wait(what string, check func() (bool, error)) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	over := time.After(limit)
	for {
		if ok, err := check(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-over:
			return fmt.Errorf("%w: %s", errLimit, what)
		}
	}
}
