package systemd

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParseUnit(t *testing.T) {
	general := properties{
		"LoadState": "loaded", "ActiveState": "active", "SubState": "running", "UnitFileState": "enabled",
		"FragmentPath": "/usr/lib/systemd/system/x.service", "DropInPaths": []string{"/etc/x.conf"},
		"NeedDaemonReload": true, "InvocationID": []byte{0xab, 0x01},
		"ActiveEnterTimestamp": uint64(1_700_000_000_000_001),
		"StartLimitBurst":      uint32(3), "StartLimitIntervalUSec": uint64(60_000_000),
		"BoundBy": []string{"b.service", "a.service"}, "RequiredBy": []string{"a.service"}, "ConsistsOf": []string{"c.service"},
		"Job": []any{uint32(7), "/org/freedesktop/systemd1/job/7"},
	}
	service := properties{
		"EnvironmentFiles": [][]any{{"/etc/a", true}, {"/etc/b", false}},
		"Environment":      []string{"A=b"}, "UnsetEnvironment": []string{"U"}, "PassEnvironment": []string{"P"},
		"KillMode": "process", "Type": "notify", "MainPID": uint32(42), "Result": "success", "ExecMainStatus": int32(3),
	}
	want := Unit{
		Name: "x.service", LoadState: "loaded", ActiveState: "active", SubState: "running", UnitFileState: "enabled",
		FragmentPath: "/usr/lib/systemd/system/x.service", DropInPaths: []string{"/etc/x.conf"},
		EnvironmentFiles: []EnvironmentFile{{"/etc/a", true}, {"/etc/b", false}},
		Environment:      NewEnvironment([]string{"A=b"}), UnsetEnvironment: []string{"U"}, PassEnvironment: []string{"P"},
		NeedDaemonReload: true, InvocationID: "ab01", KillMode: "process", Type: "notify", MainPID: 42,
		Result: "success", ExecMainStatus: 3, ActiveEnterTime: time.UnixMicro(1_700_000_000_000_001),
		StartLimitBurst: 3, StartLimitInterval: time.Minute,
		PropagatesRestart: []string{"a.service", "b.service", "c.service"}, JobID: 7,
	}
	if got := parseUnit("x.service", general, service); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestParseUnitOfOtherTypes(t *testing.T) {
	got := parseUnit("x.service", properties{"LoadState": 7, "Job": []any{}}, properties{"EnvironmentFiles": [][]any{{"/short"}}})
	if want := (Unit{Name: "x.service", Environment: NewEnvironment(nil)}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want the zero values", got)
	}
	if d := duration(math.MaxUint64); d != math.MaxInt64 {
		t.Errorf("infinity reads as %v", d)
	}
	if ts := timestamp(0); !ts.IsZero() {
		t.Errorf("never reads as %v", ts)
	}
}

func TestC54_EnvironmentDoesNotPrint(t *testing.T) {
	const password = "plant3d-secret"
	u := Unit{Environment: NewEnvironment([]string{"HTTPS_PROXY=http://u:" + password + "@x"})}
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("unit", "unit", u, "env", u.Environment)
	data, err := json.Marshal(u)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		fmt.Sprint(u), fmt.Sprintf("%+v", u), fmt.Sprintf("%#v", u), fmt.Sprintf("%s", u.Environment), string(data), logged.String(),
	} {
		if strings.Contains(text, password) {
			t.Errorf("the password is in %q", text)
		}
	}
	if got := u.Environment.Reveal(); len(got) != 1 || !strings.Contains(got[0], password) {
		t.Errorf("Reveal gives %q", got)
	}
}
