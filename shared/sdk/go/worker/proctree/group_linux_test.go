package proctree

import "testing"

func TestMountOfCgroups(t *testing.T) {
	t.Parallel()
	const v1 = "30 25 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
	for name, test := range map[string]struct{ mounts, want string }{
		"v2":     {"24 1 0:22 / / rw - ext4 /dev/vda rw\n31 25 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup"},
		"hybrid": {v1 + "32 25 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup/unified"},
		"v1":     {v1, ""},
		"none":   {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := mountOf([]byte(test.mounts)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestForeignGroupIsNotKilled uses a record of another user that names a cgroup of others.
func TestForeignGroupIsNotKilled(t *testing.T) {
	t.Parallel()
	own, err := ownCgroup()
	if err != nil {
		t.Skipf("needs a cgroup v2: %v", err)
	}
	if left, err := KillMarked("SORTIE_TEST_MARK=planted", own); left != 0 || err != nil {
		t.Errorf("got %d processes, %v, want none", left, err)
	}
	if _, err := NewGroup(""); err == nil {
		t.Error("got a cgroup without a mark, want an error")
	}
}
