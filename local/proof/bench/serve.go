package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"syscall"
	"time"

	"github.com/sortie-dev/sortie/local/samples"
	"github.com/sortie-dev/sortie/local/twin/flymachines"
	"github.com/sortie-dev/sortie/local/twin/stack"
	"github.com/sortie-dev/sortie/shared/adapter/r2"
	"github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/sdk/go/worker/supervisor"
)

// serve runs a stack in this process until SIGTERM. It prints its addresses as
// one line of JSON.
func serve(args []string) int {
	flags := flag.NewFlagSet("serve", flag.ExitOnError)
	runner := flags.String("runner", "process", "what a machine is: goroutine, function or process")
	what := flags.String("work", "callback", "what a worker does; see workAs. Empty is the export worker.")
	limit := flags.Int("limit", 0, "machines at once; 0 is no limit")
	queue := flags.Int("queue-limit", 0, "queued runs above which new ones are refused; 0 is no limit")
	grace := flags.Duration("grace", 30*time.Second, "how long a worker may take to end when asked to")
	engine := flags.String("engine", "", "address of an inference server")
	kind := flags.String("engine-kind", string(platform.EngineLlamaCpp), "protocol of the inference server")
	small := flags.String("supervisor", "", "sortie-exec, which supervises programs; empty is this program")
	takes := flags.Duration("takes", 0, "how long a function works before its callback")
	folder := flags.String("dir", "", "the folder of the data, which stays; empty is a temporary one")
	hooks := flags.Bool("hooks", false, "allow webhooks to receivers on loopback")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	dir := *folder
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "sortie-bench-"); err != nil {
			return failed(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
	}
	values := map[string]string{
		"SORTIE_MAX_MACHINES": strconv.Itoa(*limit), "SORTIE_CANCEL_GRACE": grace.String(),
		"SORTIE_QUEUE_LIMIT": strconv.Itoa(*queue),
	}
	if *hooks {
		values["SORTIE_HOOK_ALLOW"] = "127.0.0.1"
	}
	settings, err := stack.SettingsFrom(setting.Map(values), nil)
	if err != nil {
		return failed(err)
	}
	executable, err := os.Executable()
	if err != nil {
		return failed(err)
	}
	config := stack.Config{
		Addr: "127.0.0.1:0", DataDir: dir, Settings: settings, Executable: []string{executable}, Supervisor: startsProgram(*small, supervisor.Command),
		Log: slog.New(slog.DiscardHandler),
	}
	if *engine != "" {
		config.Engines = []stack.EngineAddress{{Kind: platform.EngineKind(*kind), URL: *engine}}
	}
	switch *runner {
	case "goroutine":
		machines := newGoroutines(callBack, clock.System{}.Now)
		if *what == "envelopes" {
			machines.work, machines.stay = handOut(os.Stdout), true
		}
		if size, ok := uploadSize(*what); ok {
			machines.work = func(env map[string]string) { upload(env, size) }
		}
		config.Runner = machines
	case "function":
		config.Starter = flymachines.Functions{Clock: clock.System{}, Programs: map[string]flymachines.Function{
			"callback": func(_ context.Context, p flymachines.Program, _ io.Writer) int {
				pause(*takes)
				callBack(p.Env)
				return 0
			},
		}}
		config.Images = map[string][]string{service.DefaultImage: {"callback"}}
	default:
		if *what != "" {
			config.Images = map[string][]string{service.DefaultImage: {executable, "work", *what}}
		}
	}
	return keepRunning(config, *runner)
}

func keepRunning(config stack.Config, runner string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s, err := stack.Start(ctx, config)
	if err != nil {
		return failed(err)
	}
	reserve := stack.Reserve() // as in sortie dev
	defer runtime.KeepAlive(reserve)
	if err := json.NewEncoder(os.Stdout).Encode(s.Addresses()); err != nil {
		return failed(err)
	}
	profiled := func() {}
	if name := os.Getenv("BENCH_PROFILE"); name != "" {
		if profiled, err = profile(name + "." + runner); err != nil {
			return failed(err)
		}
	}
	before := s.Stats()
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	collect := make(chan os.Signal, 1)
	signal.Notify(collect, syscall.SIGUSR1)
	count := make(chan os.Signal, 1)
	signal.Notify(count, syscall.SIGUSR2)
	for {
		select {
		case <-hup: // print the writes since the last time
			after := s.Stats()
			fmt.Printf("%d %d %d\n", after.Changes-before.Changes, after.Commits-before.Commits, after.Rows-before.Rows)
			before = after
			continue
		case <-collect:
			// Each collection halves the goroutine stacks that are used to less than a quarter.
			// The second one frees the content of sync.Pools.
			for range 4 {
				runtime.GC()
			}
			debug.FreeOSMemory()
			fmt.Println("collected")
			continue
		case <-count: // print the objects that were allocated since the start
			var memory runtime.MemStats
			runtime.ReadMemStats(&memory)
			fmt.Println(memory.Mallocs)
			continue
		case <-ctx.Done():
		}
		break
	}
	profiled()
	if err := s.Stop(context.Background()); err != nil {
		return failed(err)
	}
	return 0
}

// workAs runs a worker with the given behaviour:
//
//	callback   calls back a success
//	wait       waits until it is stopped
//	upload:N   uploads N bytes, and calls back
//	listen     calls started, and reports its cancellation on SIGTERM
//	deaf       ignores SIGTERM
func workAs(what string) int {
	env := map[string]string{}
	for _, name := range []string{"TASK_ID", "CALLBACK_URL", "R2_ENDPOINT", "R2_ACCOUNT_ID", "R2_ACCESS_KEY_ID", "R2_SECRET_ACCESS_KEY", "R2_BUCKET"} {
		env[name] = os.Getenv(name)
	}
	switch what {
	case "wait":
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		<-ctx.Done()
	case "callback":
		callBack(env)
	case "listen":
		return listen()
	case "deaf":
		deaf()
	default:
		size, ok := uploadSize(what)
		if !ok {
			return failed(fmt.Errorf("unknown work %q", what))
		}
		return upload(env, size)
	}
	return 0
}

// uploadSize returns the size of a work that uploads.
func uploadSize(what string) (size int64, ok bool) {
	_, err := fmt.Sscanf(what, "upload:%d", &size)
	return size, err == nil
}

func upload(env map[string]string, size int64) int {
	uploader, err := r2.NewUploader(r2.Config{
		Endpoint: env["R2_ENDPOINT"], AccountID: env["R2_ACCOUNT_ID"], AccessKeyID: env["R2_ACCESS_KEY_ID"],
		SecretAccessKey: env["R2_SECRET_ACCESS_KEY"], Uploads: env["R2_BUCKET"],
	})
	if err != nil {
		return failed(err)
	}
	key := "exports/" + env["TASK_ID"] + "/zeros.xml"
	if err := uploader.Upload(context.Background(), key, zeros{}, size, "application/xml"); err != nil {
		return failed(err)
	}
	post(env["CALLBACK_URL"], fmt.Sprintf(`{"task_id":%q,"status":"success","output_r2_key":%q,"output_file_name":"zeros.xml","output_file_size":%d}`,
		env["TASK_ID"], key, size))
	return 0
}

// zeros is an endless reader of zeros.
type zeros struct{}

// ReadAt implements io.ReaderAt.
func (zeros) ReadAt(p []byte, _ int64) (int, error) {
	clear(p)
	return len(p), nil
}

// source prints the URL and the root of a generated collection of n entities, and serves it
// until it is killed.
func source(n string) int {
	entities, err := strconv.Atoi(n)
	if err != nil {
		return failed(err)
	}
	made := samples.Sample()
	if entities != made.Len() {
		if made, err = samples.Generate(1, samples.Shape{Entities: entities}); err != nil {
			return failed(err)
		}
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return failed(err)
	}
	fmt.Printf("http://%s %s\n", listener.Addr(), made.Roots()[0].PI)
	server := &http.Server{Handler: made.Handler(clock.System{}), ReadHeaderTimeout: time.Minute}
	return failed(server.Serve(listener))
}

func failed(err error) int {
	fmt.Fprintln(os.Stderr, "bench:", err)
	return 1
}

// profile writes a CPU profile of the stack from now on, and a heap profile at the end, to
// explain a figure: BENCH_PROFILE=stack go run ./local/proof/bench -only runs.
func profile(name string) (stop func(), err error) {
	file, err := os.Create(name) //nolint:gosec // the path is from BENCH_PROFILE
	if err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = file.Close()
		if file, err = os.Create(name + ".heap"); err == nil { //nolint:gosec // as above
			runtime.GC()
			_ = pprof.WriteHeapProfile(file)
			_ = file.Close()
		}
	}, pprof.StartCPUProfile(file)
}
