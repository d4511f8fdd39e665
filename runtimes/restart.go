package runtimes

import "fmt"

// restartByKillMode says what a restart does to the containers of a runtime whose containers are
// processes in the unit's own control group (containerd's shims, CRI-O's conmon): systemd ends them
// with the unit unless KillMode says that the main process alone is ended (systemd.kill(5)).
func restartByKillMode(u *Unit) RestartEffect {
	mode, file := u.last("Service", "KillMode")
	where := "set in " + file
	if mode == "" {
		mode, where = "control-group", "systemd's default, as no file of "+u.Name+" sets another"
	}
	effect := RestartEffect{Why: fmt.Sprintf("KillMode=%s (%s)", mode, where)}
	switch mode {
	case "process", "none":
		effect.KillsContainers = False
	case "control-group", "mixed":
		effect.KillsContainers = True
	default:
		effect.Why += ", which systemd does not know"
	}
	return effect
}
