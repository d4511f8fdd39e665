package canarytest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	contentapi "github.com/containerd/containerd/api/services/content/v1"
	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	namespacesapi "github.com/containerd/containerd/api/services/namespaces/v1"
	snapshotsapi "github.com/containerd/containerd/api/services/snapshots/v1"
	"google.golang.org/grpc"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/proxyward/proxyward/internal/proxyenv"
)

// daemonVariable carries a daemon's configuration to the child that is to be it.
const daemonVariable = "PROXYWARD_CANARYTEST_DAEMON"

// DaemonConfig is how a daemon behaves. The zero value is like containerd.
type DaemonConfig struct {
	// Plain serves the CRI alone, like CRI-O.
	Plain bool
	// Discard removes layers from the store once they are unpacked.
	Discard bool
	// Pinned and InUse name an image that the runtime pins, and one that a container uses.
	Pinned, InUse string
	// Elsewhere are digests of blobs that another namespace has.
	Elsewhere []string
	// Stuck never ends a pull.
	Stuck bool

	Socket string
	CA     []byte
	Hosts  map[string]netip.AddrPort
}

// Daemon is a container runtime in a process of its own, which pulls by the proxy variables of
// that process as a real one does.
type Daemon struct {
	Socket string
	PID    int
}

// Main runs tests, or a daemon where the process was started to be one. Use it as TestMain.
func Main(m *testing.M) {
	if config := os.Getenv(daemonVariable); config != "" {
		if err := serve(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// StartDaemon starts a daemon with an environment. It ends with the test.
func StartDaemon(t testing.TB, config DaemonConfig, names *Names, ca *CA, environment proxyenv.Environment) *Daemon {
	t.Helper()
	dir, err := os.MkdirTemp("", "canary") // a test's own folder may be too long for a socket's path
	if err != nil {
		t.Fatalf("making a folder for the socket: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	config.Socket, config.CA, config.Hosts = filepath.Join(dir, "cri.sock"), ca.PEM, names.all()
	encoded, err := json.Marshal(config)
	if err != nil {
		t.Fatalf("encoding the daemon's configuration: %v", err)
	}
	child := exec.Command(os.Args[0])
	child.Env = []string{daemonVariable + "=" + string(encoded)}
	for _, v := range environment.Vars {
		child.Env = append(child.Env, v.Name+"="+v.Value.Reveal())
	}
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		t.Fatalf("starting a daemon: %v", err)
	}
	t.Cleanup(func() {
		_ = child.Process.Kill() // it may have ended by itself
		_ = child.Wait()
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("unix", config.Socket)
		if err == nil {
			conn.Close()
			return &Daemon{Socket: config.Socket, PID: child.Process.Pid}
		}
		if time.Now().After(deadline) {
			t.Fatalf("waiting for the daemon's socket: %v", err)
		}
	}
}

// serve is the daemon's main function.
func serve(encoded string) error {
	var config DaemonConfig
	if err := json.Unmarshal([]byte(encoded), &config); err != nil {
		return fmt.Errorf("reading the daemon's configuration: %w", err)
	}
	listener, err := net.Listen("unix", config.Socket)
	if err != nil {
		return fmt.Errorf("listening at %q: %w", config.Socket, err)
	}
	d := newRuntime(config)
	server := grpc.NewServer()
	criapi.RegisterImageServiceServer(server, imageService{runtime: d})
	criapi.RegisterRuntimeServiceServer(server, runtimeService{runtime: d})
	if !config.Plain {
		contentapi.RegisterContentServer(server, contentService{runtime: d})
		imagesapi.RegisterImagesServer(server, imagesService{runtime: d})
		namespacesapi.RegisterNamespacesServer(server, namespacesService{runtime: d})
		snapshotsapi.RegisterSnapshotsServer(server, snapshotsService{runtime: d})
	}
	return server.Serve(listener)
}
