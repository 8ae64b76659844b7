"""The closed list of what the audit trail tells: each verb, the group it is found under, and its words in the access log.

`words` may name what an entry's data holds in braces; `{subject}` is the name of what it was done to, where that is known.
"""

from collections.abc import Mapping
from dataclasses import dataclass

GROUPS: Mapping[str, str] = {
    "sign_in": "Signing in",
    "refused": "Refusals",
    "reveal": "Reveals and downloads",
    "export": "Exports",
    "rights": "People, roles and rights",
    "keys": "Keys",
    "policy": "Policies and groups",
    "decision": "Decisions on actions",
    "freeze": "Freezes",
    "run": "Runs",
    "delivery": "Notifications and webhooks",
    "vault": "The vault and redaction",
    "breakglass": "Break-glass",
}


@dataclass(frozen=True)
class Verb:
    group: str
    words: str
    refused: bool = False  # drawn as “Refused: …”


VERBS: Mapping[str, Verb] = {
    # signing in
    "signed_in": Verb("sign_in", "Signed in by {how}"),
    "signed_out": Verb("sign_in", "Signed out"),
    "sign_in_refused": Verb("sign_in", "sign in as {subject}", refused=True),
    "sign_in_locked": Verb("sign_in", "sign in as {subject}, after too many wrong answers", refused=True),
    "password_changed": Verb("sign_in", "Changed their password"),
    "session_ended": Verb("sign_in", "Ended a session of theirs"),
    "sessions_ended": Verb("sign_in", "Ended all other sessions of theirs: {ended}"),
    "confirmed_again": Verb("sign_in", "Showed again that it is them, by {how}"),
    "second_factor_added": Verb("sign_in", "Set up a second factor: {kind}"),
    "second_factor_removed": Verb("sign_in", "Removed a second factor of theirs: {kind}"),
    "recovery_codes_made": Verb("sign_in", "Made new recovery codes"),
    "sign_in_linked": Verb("sign_in", "Came by single sign-on for the first time"),
    "password_link_asked": Verb("sign_in", "A link for a new password of {subject} was asked for"),
    "password_chosen": Verb("sign_in", "Chose a new password by a link"),
    # refusals
    "refused": Verb("refused", "{right}", refused=True),
    "reveal_refused": Verb("refused", "reveal a hidden value", refused=True),
    "digest_mismatch": Verb("refused", "run something else than was approved", refused=True),
    # reveals, downloads, exports
    "revealed": Verb("reveal", "Revealed {hidden}"),
    "reveal_ended": Verb("reveal", "Hid again what was revealed"),
    "downloaded": Verb("reveal", "Downloaded {subject}"),
    "audit_exported": Verb("export", "Exported the access log, entries: {entries}"),
    # people, roles and rights
    "invited": Verb("rights", "Invited somebody as {role}"),
    "invitation_sent_again": Verb("rights", "Sent an invitation again"),
    "invitation_withdrawn": Verb("rights", "Withdrew an invitation"),
    "invitation_accepted": Verb("rights", "Accepted an invitation"),
    "role_given": Verb("rights", "Gave {subject} the role {role}, instead of {was}"),
    "person_deactivated": Verb("rights", "Deactivated {subject}"),
    "person_reactivated": Verb("rights", "Reactivated {subject}"),
    "second_factors_removed": Verb("rights", "Removed the passkeys and codes of {subject}"),
    "password_link_made": Verb("rights", "Made a link for a new password of {subject}"),
    "second_admin_set": Verb("rights", "Set when a change takes a second admin: {when}"),
    "role_change_asked": Verb("rights", "Asked for a change of the role {subject}"),
    "role_made": Verb("rights", "Made the role {subject}"),
    "role_retired": Verb("rights", "Retired the role {subject}"),
    "role_changed": Verb("rights", "Changed the role {subject}, version {version}"),
    "role_change_refused": Verb("rights", "Refused a change of the role {subject}"),
    "role_change_withdrawn": Verb("rights", "Withdrew a change of the role {subject}"),
    "team_made": Verb("rights", "Made the team {subject}"),
    "team_renamed": Verb("rights", "Renamed a team to {subject}"),
    "team_deleted": Verb("rights", "Deleted the team {subject}"),
    "team_joined": Verb("rights", "Took {to} into the team {subject}"),
    "team_left": Verb("rights", "Took {to} out of the team {subject}"),
    "team_agent_joined": Verb("rights", "Let {agent} work for the team {subject}; runs that went along: {runs}"),
    "team_agent_left": Verb("rights", "Took {agent} from the team {subject}; runs that went along: {runs}"),
    "role_change_overtaken": Verb("rights", "Could not confirm a change of the role {subject}: something else came first"),
    "change_asked": Verb("rights", "Asked for a change of {what}"),
    "change_confirmed": Verb("rights", "Confirmed a change of {what}"),
    "change_refused": Verb("rights", "Refused a change of {what}"),
    "change_withdrawn": Verb("rights", "Withdrew a change of {what}"),
    "change_overtaken": Verb("rights", "Could not confirm a change of {what}: something else came first"),
    "delegated": Verb("rights", "Let {to} decide for them while they are away"),
    "delegation_ended": Verb("rights", "Ended a delegation"),
    # keys
    "agent_created": Verb("keys", "Made the agent {subject}"),
    "key_created": Verb("keys", "Made a key of {subject}"),
    "key_rotated": Verb("keys", "Rotated a key of {subject}"),
    "key_revoked": Verb("keys", "Revoked a key of {subject}"),
    "provisioner_created": Verb("keys", "Made the provisioner key {subject}"),
    "provisioner_rotated": Verb("keys", "Rotated the provisioner key {subject}"),
    "provisioner_revoked": Verb("keys", "Revoked the provisioner key {subject}"),
    # policies, groups, standing grants
    "policy_saved": Verb("policy", "Put version {version} of the policies in force"),
    "action_tried": Verb("policy", "Tried {subject} again in the simulator"),
    "policy_tried": Verb("policy", "Tried a draft of the policies on {of} actions"),
    "group_saved": Verb("policy", "Saved the group {subject}, version {version}"),
    "standing_grant_made": Verb("policy", "Approved the like of an action, {budget} times"),
    "standing_grant_revoked": Verb("policy", "Revoked a standing approval"),
    # decisions on actions
    "decided": Verb("decision", "Decided on {subject}: {verdict}"),
    "action_edited": Verb("decision", "Edited {subject}"),
    "agent_asked": Verb("decision", "Asked the agent about {subject}"),
    "claimed": Verb("decision", "Claimed {subject}"),
    "claim_released": Verb("decision", "Gave back the claim on {subject}"),
    "granted": Verb("decision", "Let {subject} run, as its policy says"),
    # freezes
    "frozen": Verb("freeze", "Froze {what}"),
    "unfrozen": Verb("freeze", "Unfroze {what}"),
    # runs
    "run_started": Verb("run", "Started a run"),
    "signal_sent": Verb("run", "Sent “{kind}”: {status}"),
    "question_answered": Verb("run", "Answered a question of a run"),
    "budgets_set": Verb("run", "Set the limits of a run"),
    "recovered": Verb("run", "Recovery of a stuck run: {choice}"),
    "recalled": Verb("decision", "Recalled an approval of {subject}"),
    "outcome_said": Verb("decision", "Said what happened to an action: {outcome}"),
    # notifications and webhooks
    "reminder_set": Verb("delivery", "Set when a reminder is sent: after {minutes} minutes"),
    "escalation_set": Verb("delivery", "Set who is told when nobody answers: {to} after {minutes} minutes"),
    "escalation_removed": Verb("delivery", "Removed {to} from who is told when nobody answers"),
    "notification_tried_again": Verb("delivery", "Sent a notification again"),
    "webhook_set": Verb("delivery", "Set their webhook"),
    "webhook_secret_rotated": Verb("delivery", "Rotated the secret of their webhook"),
    "webhook_removed": Verb("delivery", "Removed their webhook"),
    "webhook_source_made": Verb("delivery", "Made the webhook source {subject}"),
    "webhook_source_rotated": Verb("delivery", "Rotated the secret of the webhook source {subject}"),
    "webhook_source_closed": Verb("delivery", "Closed the webhook source {subject}"),
    "webhook_discarded": Verb("delivery", "Discarded a webhook that nothing waited for"),
    "webhook_applied_again": Verb("delivery", "Applied a webhook again"),
    # the vault
    "vault_key_rotated": Verb("vault", "Rotated the workspace’s key of the vault"),
    "vault_key_retired": Verb("vault", "Retired a key of the vault"),
    "vault_key_destroyed": Verb("vault", "Destroyed a key of the vault"),
    "vault_key_resealed": Verb("vault", "Sealed a key of the vault with the new master key"),
    "rerendered": Verb("vault", "Made {payloads} renditions anew, of {looked} looked at"),
    "redaction_policy_made": Verb("vault", "Put a redaction policy in force, version {number}"),
    "redaction_policy_withdrawn": Verb("vault", "Withdrew a redaction policy, version {number}"),
    "payload_erased": Verb("vault", "Erased a payload for good: {reason}"),
    # break-glass
    "glass_broken": Verb("breakglass", "Took rights by break-glass, {minutes} minutes"),
    "glass_ended": Verb("breakglass", "Ended break-glass early"),
    "glass_reviewed": Verb("breakglass", "Reviewed the break-glass of {subject}"),
}
