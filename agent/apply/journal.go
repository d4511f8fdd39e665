package apply

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Paths of what the transaction keeps on the host, all below a directory of mode 0700.
const (
	StateDir      = "/var/lib/proxyward"
	JournalPath   = StateDir + "/journal"
	HistoryPath   = StateDir + "/history"
	KnownGoodPath = StateDir + "/last-known-good.json"
	backupDir     = StateDir + "/backup"
)

// journalSchema is raised when a journal can no longer be read by older code.
const journalSchema = 1

// Step is where a transaction stands. The journal names a step before it is taken.
type Step string

// The steps. Up to StepArm the host is as it was; from StepCommit on the new state stands, from
// StepTidy on the old one.
const (
	StepAsk      Step = "ask" // before the journal is opened
	StepBaseline Step = "baseline"
	StepSave     Step = "save"
	StepTry      Step = "try-dead-man"
	StepArm      Step = "arm-dead-man"
	StepWrite    Step = "write"
	StepReload   Step = "reload"
	StepRestart  Step = "restart"
	StepCheck    Step = "check"
	StepProve    Step = "prove"
	StepCommit   Step = "commit"

	StepUndoWrite   Step = "undo-write"
	StepUndoReload  Step = "undo-reload"
	StepUndoRestart Step = "undo-restart"
	StepUndoProve   Step = "undo-prove"
	StepTidy        Step = "undo-tidy"

	StepClosed Step = "closed"
)

// untouched says that no step so far has changed the host.
func (s Step) untouched() bool {
	return s == StepSave || s == StepTry || s == StepArm
}

// decided says that only tidying is left.
func (s Step) decided() bool { return s == StepCommit || s == StepTidy }

// undoing says that the undo was decided and is not complete.
func (s Step) undoing() bool {
	return s == StepUndoWrite || s == StepUndoReload || s == StepUndoRestart || s == StepUndoProve
}

// Record is the journal of one transaction. It holds no content of any file.
type Record struct {
	Attempt            string    `json:"attempt"`
	PlanHash           string    `json:"planHash"`
	Revision           string    `json:"revision,omitempty"`
	CredentialsVersion string    `json:"credentialsVersion,omitempty"`
	BootID             string    `json:"bootID"`
	Begun              time.Time `json:"begun"`
	Step               Step      `json:"step"`
	// Unit in hand at the step.
	Unit    string       `json:"unit,omitempty"`
	Changes []Change     `json:"changes"`
	Units   []UnitRecord `json:"units,omitempty"`
	// Proven says that a proof was asked for and a baseline made.
	Proven   bool      `json:"proven,omitempty"`
	Baseline []Failure `json:"baseline,omitempty"`
	// OldDead says that the previous password no longer works, so that the previous environment
	// cannot be proven again.
	OldDead bool `json:"oldDead,omitempty"`
	// First failure, for whoever reports it in the end.
	First string `json:"first,omitempty"`
	// Resumes counts the processes that went on forward, UndoTries those that began to undo.
	Resumes   int `json:"resumes,omitempty"`
	UndoTries int `json:"undoTries,omitempty"`
	// Digests of the canary images that arrived in the new state's proof.
	Digests map[string]string `json:"digests,omitempty"`
	// Outcome is set when it is decided, By (agent, bootstrap, dead-man, …) when the journal closes.
	Outcome Outcome `json:"outcome,omitempty"`
	By      string  `json:"by,omitempty"`
}

// UnitRecord is one unit that the plan restarts: how it was, and the invocation that each restart
// replaces, so that a restart which has happened is not made again.
type UnitRecord struct {
	Unit string `json:"unit"`
	// Active is false for a unit that was stopped; it stays so.
	Active       bool   `json:"active"`
	InvocationID string `json:"invocationID,omitempty"`
	// Replaced and UndoReplaced are the invocations before the restart and before the undo's; nil
	// until it was about to be made.
	Replaced     *string `json:"replaced,omitempty"`
	UndoReplaced *string `json:"undoReplaced,omitempty"`
	// Creating lists the containers that were in creation before the restart.
	Creating []string `json:"creating,omitempty"`
}

// Finished says that nothing is left to do.
func (r *Record) Finished() bool { return r.Step == StepClosed }

// JournalError says that a file of the transaction cannot be understood.
type JournalError struct {
	Path string
	Err  error
}

// Error implements error.
func (e *JournalError) Error() string {
	return fmt.Sprintf("reading %q: %v; if a change was unfinished, its previous files are below %q: "+
		"put them back, then move %q away", e.Path, e.Err, backupDir, e.Path)
}

// Unwrap returns the cause.
func (e *JournalError) Unwrap() error { return e.Err }

// ReadJournal returns the journal of the last transaction, or nil when there was none. One that is
// damaged or from a newer version is a *JournalError.
func ReadJournal(files Reader) (*Record, error) {
	var rec Record
	found, err := readSealed(files, JournalPath, &rec)
	if err != nil || !found {
		return nil, err
	}
	return &rec, nil
}

func writeJournal(files Writer, rec *Record) error {
	if err := writeSealed(files, JournalPath, rec); err != nil {
		return fmt.Errorf("journalling step %q: %w", rec.Step, err)
	}
	return nil
}

// envelope lets a reader tell a whole file from a damaged one.
type envelope struct {
	Schema int             `json:"schema"`
	SHA256 string          `json:"sha256"`
	Body   json.RawMessage `json:"body"`
}

func writeSealed(files Writer, path string, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding %q: %w", path, err)
	}
	sum := sha256.Sum256(body)
	data, err := json.Marshal(envelope{Schema: journalSchema, SHA256: hex.EncodeToString(sum[:]), Body: body})
	if err != nil {
		return fmt.Errorf("encoding %q: %w", path, err)
	}
	if err := files.MkdirAll(StateDir, 0o700); err != nil {
		return err
	}
	_, err = files.WriteFile(path, append(data, '\n'), 0o600)
	return err
}

func readSealed(files Reader, path string, value any) (found bool, err error) {
	data, err := files.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, &JournalError{Path: path, Err: err}
	}
	var env envelope
	if err := json.Unmarshal(data, &env); err != nil {
		return false, &JournalError{Path: path, Err: err}
	}
	if env.Schema != journalSchema {
		return false, &JournalError{Path: path, Err: fmt.Errorf("it has schema %d, this program knows %d; run the newer version", env.Schema, journalSchema)}
	}
	sum := sha256.Sum256(env.Body)
	if hex.EncodeToString(sum[:]) != env.SHA256 {
		return false, &JournalError{Path: path, Err: errors.New("its checksum does not match, so it was damaged or edited")}
	}
	dec := json.NewDecoder(bytes.NewReader(env.Body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(value); err != nil {
		return false, &JournalError{Path: path, Err: err}
	}
	return true, nil
}
