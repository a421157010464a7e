package node

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// pod is a pod of the node. Its only container is a process.
type pod struct {
	cfg   Config
	first *corev1.Pod // as first received
	log   string
	// deleted is closed when the node sees the deletion of the pod.
	deleted chan struct{}

	mu       sync.Mutex
	process  *os.Process
	stopping bool
	deadline *time.Timer
}

func newPod(cfg Config, first *corev1.Pod) *pod {
	return &pod{cfg: cfg, first: first, log: filepath.Join(cfg.Dir, string(first.UID)+".log"), deleted: make(chan struct{})}
}

// retryTime is the delay before the node retries to create a container or to report.
const retryTime = 200 * time.Millisecond

// pause waits for retryTime. It returns false if the context ends or the pod is deleted first.
func (p *pod) pause(ctx context.Context) bool {
	timer := time.NewTimer(retryTime)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-p.deleted:
	}
	return false
}

// run starts the container, waits for its end and reports both.
func (p *pod) run(ctx context.Context) {
	state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "ContainerStatusUnknown", FinishedAt: metav1.Now()}}
	for {
		command, waiting := p.command(ctx)
		if waiting == nil {
			state = p.play(ctx, command)
			break
		}
		p.report(ctx, corev1.PodPending, corev1.ContainerState{Waiting: waiting})
		if !p.pause(ctx) {
			break
		}
	}
	if ctx.Err() != nil {
		return
	}
	phase := corev1.PodFailed
	if state.Terminated.ExitCode == 0 {
		phase = corev1.PodSucceeded
	}
	p.report(ctx, phase, state)
	select {
	case <-p.deleted:
		p.finish(ctx)
	case <-ctx.Done():
	}
}

// command returns the command of the container, or the reason why it cannot be created.
func (p *pod) command(ctx context.Context) (*exec.Cmd, *corev1.ContainerStateWaiting) {
	c := p.first.Spec.Containers[0]
	image, known := p.cfg.Images[c.Image]
	if !known {
		return nil, &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "image " + c.Image + ": not found"}
	}
	env := []string{"PATH=" + p.cfg.Path, "HOME=" + p.cfg.Dir}
	for _, from := range c.EnvFrom {
		if from.SecretRef == nil {
			continue
		}
		secret, err := p.cfg.Client.CoreV1().Secrets(p.first.Namespace).Get(ctx, from.SecretRef.Name, metav1.GetOptions{})
		if err != nil {
			return nil, &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: strings.ReplaceAll(err.Error(), "secrets ", "secret ")}
		}
		for name, value := range secret.Data {
			env = append(env, name+"="+string(value))
		}
	}
	for _, v := range c.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	args := append([]string{}, image...)
	if len(c.Command) > 0 {
		args = append([]string{}, c.Command...)
	}
	for _, arg := range c.Args {
		args = append(args, strings.ReplaceAll(arg, "$$", "$"))
	}
	command := exec.Command(args[0], args[1:]...) //nolint:gosec // G204: runs what the pod says, as a node does
	command.Env, command.Dir = env, p.cfg.Dir
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return command, nil
}

// play runs the process and returns its final state.
func (p *pod) play(ctx context.Context, command *exec.Cmd) corev1.ContainerState {
	begun := metav1.Now()
	terminated := func(code int32, reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, Message: message, StartedAt: begun, FinishedAt: metav1.Now(),
		}}
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return terminated(128, "StartError", err.Error())
	}
	defer log.Close()
	command.Stdout, command.Stderr = log, log
	p.mu.Lock()
	if p.stopping {
		p.mu.Unlock()
		return terminated(137, "ContainerStatusUnknown", "the pod was deleted before its container started")
	}
	if err = command.Start(); err == nil {
		p.process = command.Process
	}
	p.mu.Unlock()
	if err != nil {
		return terminated(128, "StartError", err.Error())
	}
	p.report(ctx, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: begun}})
	err = command.Wait()
	p.mu.Lock()
	p.process = nil
	if p.deadline != nil {
		p.deadline.Stop()
	}
	p.mu.Unlock()
	code, reason := int32(0), "Completed"
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		code, reason = int32(exit.ExitCode()), "Error" //nolint:gosec // G115: an exit code
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			code = 128 + int32(status.Signal()) //nolint:gosec // G115: a signal
		}
	}
	return terminated(code, reason, "")
}

// stop sends SIGTERM at the first call, and SIGKILL after the pod's grace period.
func (p *pod) stop(now *corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopping {
		p.stopping = true
		close(p.deleted)
		p.signal(syscall.SIGTERM)
	}
	grace := time.Second
	if now.DeletionGracePeriodSeconds != nil {
		grace = max(grace, time.Duration(*now.DeletionGracePeriodSeconds)*time.Second)
	}
	if p.deadline != nil {
		p.deadline.Stop()
	}
	if p.process != nil {
		p.deadline = time.AfterFunc(grace, p.kill)
	}
}

// signal sends a signal to the process and its children. p.mu is held.
func (p *pod) signal(s syscall.Signal) {
	if p.process != nil {
		_ = syscall.Kill(-p.process.Pid, s) // an error if it has ended
	}
}

func (p *pod) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.signal(syscall.SIGKILL)
}

// report writes the status of the pod. It retries until the API server accepts it or the pod is
// gone.
func (p *pod) report(ctx context.Context, phase corev1.PodPhase, state corev1.ContainerState) {
	c := p.first.Spec.Containers[0]
	status := corev1.PodStatus{
		Phase: phase, StartTime: &p.first.CreationTimestamp,
		ContainerStatuses: []corev1.ContainerStatus{{Name: c.Name, Image: c.Image, Ready: state.Running != nil, State: state}},
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.first.UID}, "status": status})
	if err != nil {
		p.cfg.Log.Error("cannot encode the status of a pod", "pod", p.first.Name, "error", err)
		return
	}
	// A merge patch replaces the container's status as a whole; a strategic merge would keep
	// earlier states.
	p.again(ctx, func() error {
		_, err := p.cfg.Client.CoreV1().Pods(p.first.Namespace).Patch(ctx, p.first.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		return err
	})
}

// finish removes a deleted pod whose container has ended.
func (p *pod) finish(ctx context.Context) {
	p.again(ctx, func() error {
		return p.cfg.Client.CoreV1().Pods(p.first.Namespace).Delete(ctx, p.first.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(string(p.first.UID)),
		})
	})
}

// again retries a call until it succeeds or the pod does not exist.
func (p *pod) again(ctx context.Context, call func() error) {
	for {
		err := call()
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || ctx.Err() != nil {
			return
		}
		p.cfg.Log.Debug("cannot report about a pod", "pod", p.first.Name, "error", err)
		timer := time.NewTimer(retryTime)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}
