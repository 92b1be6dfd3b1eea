//! Mistakes in the files under test, each of which the scene of its file has to find.

pub(crate) struct Mistake {
    pub(crate) module: &'static str,
    pub(crate) name: &'static str,
    /// This text, which is in the file once…
    pub(crate) instead_of: &'static str,
    /// …is replaced.
    pub(crate) write: &'static str,
}

pub(crate) const MISTAKES: &[Mistake] = &[
    Mistake {
        module: "alarms",
        name: "does_not_wake_the_thread",
        instead_of: "            self.alarms.earlier.notify_one();\n",
        write: "",
    },
    Mistake {
        module: "alarms",
        name: "wakes_only_a_thread_that_sleeps",
        instead_of: "earlier.notify_one()",
        write: "earlier.notify_waiters()",
    },
    Mistake {
        module: "alarms",
        name: "takes_the_first_alarm_for_no_earlier",
        instead_of: "looks_at.is_none_or(",
        write: "looks_at.is_some_and(",
    },
    Mistake {
        module: "alarms",
        name: "believes_that_the_thread_looks_when_it_last_meant_to",
        instead_of: "        set.looks_at = set.due.keys().next().map(|(moment, _)| *moment);\n        let next = set.looks_at;\n",
        write: "        let next = set.due.keys().next().map(|(moment, _)| *moment);\n",
    },
    Mistake {
        module: "alarms",
        name: "has_one_place_for_one_moment",
        instead_of: "            set.next_id += 1;\n",
        write: "",
    },
    Mistake {
        module: "alarms",
        name: "keeps_the_alarms_of_those_who_left",
        instead_of: "self.alarms.lock().due.remove(&(self.deadline, id))",
        write: "id",
    },
    Mistake {
        module: "appointments",
        name: "wakes_only_a_task_that_sleeps",
        instead_of: "earlier.notify_one()",
        write: "earlier.notify_waiters()",
    },
    Mistake {
        module: "appointments",
        name: "believes_that_the_task_looks_when_it_last_meant_to",
        instead_of: "        book.looks_at = book.first_due();\n        (taken, book.looks_at)\n",
        write: "        (taken, book.first_due())\n",
    },
    Mistake {
        module: "appointments",
        name: "starts_a_task_beside_another",
        instead_of: "std::mem::replace(&mut book.has_task, true)",
        write: "book.has_task",
    },
    Mistake {
        module: "appointments",
        name: "leaves_what_is_there_when_the_task_ends",
        instead_of: "goes_on && !book.entries.is_empty()",
        write: "false",
    },
    Mistake {
        module: "appointments",
        name: "believes_in_the_task_that_ended",
        instead_of: "        let has_task = book.has_task;\n        drop(book);\n",
        write: "        let has_task = std::mem::replace(&mut book.has_task, true);\n        drop(book);\n",
    },
    Mistake {
        module: "appointments",
        name: "unlocks_before_the_task_has_ended",
        instead_of: "        book.has_task = goes_on && !book.entries.is_empty();\n",
        write: "        let is_needed = goes_on && !book.entries.is_empty();\n        drop(book);\n        let mut book = self.book();\n        book.has_task = is_needed;\n",
    },
    Mistake {
        module: "signal",
        name: "asks_before_it_listens",
        instead_of: "            let said = self.0.notified();\n            if is_so() {\n                return;\n            }\n",
        write: "            if is_so() {\n                return;\n            }\n            let said = self.0.notified();\n",
    },
    Mistake {
        module: "signal",
        name: "wakes_one_of_several",
        instead_of: "notify_waiters()",
        write: "notify_one()",
    },
    Mistake {
        module: "signal",
        name: "asks_once",
        instead_of: "            said.await;\n",
        write: "            return said.await;\n",
    },
    Mistake {
        module: "board",
        name: "counts_before_it_locks",
        instead_of: "        let mut channels = self.channels();\n        let nobody = sender.receiver_count() == 0;\n",
        write: "        let nobody = sender.receiver_count() == 0;\n        let mut channels = self.channels();\n",
    },
    Mistake {
        module: "board",
        name: "leaves_those_who_wait",
        instead_of: "sender.receiver_count() == 0",
        write: "true",
    },
    Mistake {
        module: "board",
        name: "gives_up_the_place_of_another",
        instead_of: " if channel.get().same_channel(sender) => {",
        write: " => {",
    },
    Mistake {
        module: "board",
        name: "keeps_the_channel_that_nobody_attends_to",
        instead_of: "                Some(channel.remove())\n",
        write: "                Some(channel.get().clone())\n",
    },
];
