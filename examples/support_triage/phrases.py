"""What the scripted model can say, in three languages. Names in braces are the facts of `drafting`; nothing else is filled in."""

LANGUAGES = ("en", "de", "pt")

GREETING = {
    "en": ("Hello {name},", "Hello,"),
    "de": ("Guten Tag {full_name},", "Guten Tag,"),
    "pt": ("Olá {name},", "Olá,"),
}

CLOSING = {
    "en": "Kind regards,\nFernhill Support",
    "de": "Mit freundlichen Grüßen\nFernhill Support",
    "pt": "Com os melhores cumprimentos,\nFernhill Support",
}

ADDED = {
    "en": "A note from our team: {note}",
    "de": "Ein Hinweis unseres Teams: {note}",
    "pt": "Uma nota da nossa equipa: {note}",
}

# how a sentence begins that can stand in a letter as it is; what begins otherwise may be an instruction, and is marked as a note
STATES = {
    "en": ("we", "you", "your", "our", "the", "this", "that", "these", "there", "it", "from", "until", "as", "if", "both"),
    "de": ("wir", "sie", "ihr", "ihre", "unser", "unsere", "der", "die", "das", "diese", "es", "ab", "bis", "wenn", "beide"),
    "pt": ("nós", "vamos", "a", "o", "as", "os", "este", "esta", "até", "se", "ambas", "ambos", "já"),
}

CREDITED = {  # in place of a refund
    "en": "Instead of a refund we will send you a credit note over {surplus}, which you can set against your next invoice.",
    "de": "Statt einer Erstattung schicken wir Ihnen eine Gutschrift über {surplus}, die Sie mit der nächsten Rechnung verrechnen können.",
    "pt": "Em vez de um reembolso, enviamos uma nota de crédito de {surplus}, que pode descontar na próxima fatura.",
}

# situation: (subject, paragraphs)
REPLIES: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = {
    "duplicate_found": {
        "en": (
            "Your duplicate charge on invoice {invoice}",
            (
                "Thank you for writing in. You are right: invoice {invoice} over {amount} was paid {count}.",
                "{payments}",
                "We will refund the extra {surplus} the way it was paid. It should reach you within 5 working days; you don’t need to do"
                " anything.",
                "The payment record is attached, so that your accounts team can file it.",
            ),
        ),
        "de": (
            "Doppelte Abbuchung der Rechnung {invoice}",
            (
                "vielen Dank für Ihre Nachricht. Sie haben recht: Die Rechnung {invoice} über {amount} wurde {count} bezahlt.",
                "{payments}",
                "Die zu viel gezahlten {surplus} erstatten wir auf demselben Weg. Das Geld sollte innerhalb von 5 Werktagen bei Ihnen"
                " sein. Sie müssen nichts weiter tun.",
                "Die Aufstellung der Zahlungen liegt für Ihre Buchhaltung bei.",
            ),
        ),
        "pt": (
            "Cobrança em duplicado da fatura {invoice}",
            (
                "Obrigado pela sua mensagem. Tem razão: a fatura {invoice}, de {amount}, foi paga {count}.",
                "{payments}",
                "Os {surplus} pagos a mais serão devolvidos pela mesma via e deverão chegar no prazo de 5 dias úteis."
                " Não precisa de fazer nada.",
                "Junto segue o registo dos pagamentos, para a vossa contabilidade.",
            ),
        ),
    },
    "duplicate_not_found": {
        "en": (
            "The payments for invoice {invoice}",
            (
                "Thank you for writing in. We have looked up invoice {invoice} over {amount}. These are all its payments in our books:",
                "{payments}",
                "We see no second charge. If your bank shows one, it may be a reservation that lapses by itself within a few days."
                " If it is booked, send us the bank’s reference and we will trace it.",
                "The payment record is attached.",
            ),
        ),
        "de": (
            "Zahlungen zur Rechnung {invoice}",
            (
                "vielen Dank für Ihre Nachricht. Wir haben die Rechnung {invoice} über {amount} geprüft. Das sind alle Zahlungen dazu"
                " in unseren Büchern:",
                "{payments}",
                "Eine zweite Abbuchung sehen wir nicht. Zeigt Ihre Bank eine, kann es eine Vormerkung sein, die nach einigen Tagen von"
                " selbst verfällt. Ist sie gebucht, schicken Sie uns bitte die Referenz der Bank, dann gehen wir ihr nach.",
                "Die Aufstellung der Zahlungen liegt bei.",
            ),
        ),
        "pt": (
            "Pagamentos da fatura {invoice}",
            (
                "Obrigado pela sua mensagem. Verificámos a fatura {invoice}, de {amount}. Estes são todos os pagamentos que temos:",
                "{payments}",
                "Não vemos uma segunda cobrança. Se o banco mostra outra, pode ser uma reserva que caduca ao fim de alguns dias."
                " Se já foi lançada, envie-nos a referência do banco e nós seguimo-la.",
                "Junto segue o registo dos pagamentos.",
            ),
        ),
    },
    "corrected_invoice": {
        "en": (
            "Corrected invoice {invoice}",
            (
                "Thank you for telling us. Invoice {invoice} over {amount} will be issued again with the VAT number {vat}.",
                "You will have the corrected invoice within 2 working days. What was paid stays booked, and the new one replaces the old.",
            ),
        ),
        "de": (
            "Korrigierte Rechnung {invoice}",
            (
                "vielen Dank für den Hinweis. Wir stellen die Rechnung {invoice} über {amount} mit der USt-IdNr. {vat} neu aus.",
                "Die korrigierte Rechnung erhalten Sie innerhalb von 2 Werktagen. Zahlungen bleiben gebucht; die neue ersetzt die alte.",
            ),
        ),
        "pt": (
            "Fatura {invoice} corrigida",
            (
                "Obrigado pelo aviso. Vamos emitir de novo a fatura {invoice}, de {amount}, com o número de contribuinte {vat}.",
                "Receberá a fatura corrigida no prazo de 2 dias úteis. O que foi pago mantém-se, e a nova substitui a antiga.",
            ),
        ),
    },
    "vat_number_missing": {
        "en": (
            "Which VAT number for invoice {invoice}?",
            (
                "Thank you for telling us. We can issue invoice {invoice} over {amount} again.",
                "Which VAT number should it carry? Send it with its country code and you will have the new invoice within 2 working days.",
            ),
        ),
        "de": (
            "Welche USt-IdNr. für die Rechnung {invoice}?",
            (
                "vielen Dank für den Hinweis. Wir können die Rechnung {invoice} über {amount} neu ausstellen.",
                "Welche USt-IdNr. soll darauf stehen? Schicken Sie sie uns mit Länderkürzel, dann kommt die neue Rechnung innerhalb von"
                " 2 Werktagen.",
            ),
        ),
        "pt": (
            "Que número de contribuinte na fatura {invoice}?",
            (
                "Obrigado pelo aviso. Podemos emitir de novo a fatura {invoice}, de {amount}.",
                "Que número de contribuinte deve levar? Envie-o com o código do país e terá a nova fatura no prazo de 2 dias úteis.",
            ),
        ),
    },
    "amount_disputed": {
        "en": (
            "The amount of invoice {invoice}",
            (
                "Thank you for telling us. Invoice {invoice} in our books is over {amount}, and these are its payments:",
                "{payments}",
                "A colleague in billing compares it with your order within 2 working days. If it is wrong, you get a corrected invoice.",
            ),
        ),
        "de": (
            "Der Betrag der Rechnung {invoice}",
            (
                "vielen Dank für den Hinweis. In unseren Büchern lautet die Rechnung {invoice} auf {amount}; das sind die Zahlungen dazu:",
                "{payments}",
                "Die Buchhaltung vergleicht sie innerhalb von 2 Werktagen mit Ihrer Bestellung. Ist sie falsch, erhalten Sie eine"
                " korrigierte Rechnung.",
            ),
        ),
        "pt": (
            "O valor da fatura {invoice}",
            (
                "Obrigado pelo aviso. Nos nossos registos a fatura {invoice} é de {amount}, com estes pagamentos:",
                "{payments}",
                "A faturação compara-a com a sua encomenda no prazo de 2 dias úteis. Se estiver errada, receberá uma fatura corrigida.",
            ),
        ),
    },
    "refund": {
        "en": (
            "Your refund request for invoice {invoice}",
            (
                "Thank you for writing in. Invoice {invoice} over {amount} has been paid:",
                "{payments}",
                "Your request for a refund is with our billing team, together with your account and these payments. They check the dates"
                " of your plan and answer within 3 working days.",
                "The payment record is attached.",
            ),
        ),
        "de": (
            "Ihre Bitte um Erstattung der Rechnung {invoice}",
            (
                "vielen Dank für Ihre Nachricht. Die Rechnung {invoice} über {amount} ist bezahlt:",
                "{payments}",
                "Ihre Bitte um Erstattung liegt mit Ihrem Konto und diesen Zahlungen bei unserer Buchhaltung. Sie prüft die Laufzeit Ihres"
                " Pakets und antwortet innerhalb von 3 Werktagen.",
                "Die Aufstellung der Zahlungen liegt bei.",
            ),
        ),
        "pt": (
            "O seu pedido de reembolso da fatura {invoice}",
            (
                "Obrigado pela sua mensagem. A fatura {invoice}, de {amount}, está paga:",
                "{payments}",
                "O seu pedido de reembolso está com a nossa faturação, com a sua conta e estes pagamentos. Vão verificar as datas do"
                " plano e respondem no prazo de 3 dias úteis.",
                "Junto segue o registo dos pagamentos.",
            ),
        ),
    },
    "refund_unpaid": {
        "en": (
            "Your refund request for invoice {invoice}",
            (
                "Thank you for writing in. Our books show no payment for invoice {invoice} over {amount}, so there is nothing to refund.",
                "If your bank shows a payment, send us its reference and we will trace it.",
            ),
        ),
        "de": (
            "Ihre Bitte um Erstattung der Rechnung {invoice}",
            (
                "vielen Dank für Ihre Nachricht. Zur Rechnung {invoice} über {amount} finden wir keine Zahlung, es gibt also nichts zu"
                " erstatten.",
                "Zeigt Ihre Bank eine Zahlung, schicken Sie uns bitte deren Referenz, dann gehen wir ihr nach.",
            ),
        ),
        "pt": (
            "O seu pedido de reembolso da fatura {invoice}",
            (
                "Obrigado pela sua mensagem. Não encontramos nenhum pagamento da fatura {invoice}, de {amount}, por isso não há o que"
                " devolver.",
                "Se o banco mostra um pagamento, envie-nos a referência e nós seguimo-la.",
            ),
        ),
    },
    "invoice_not_found": {
        "en": (
            "Invoice {invoice}: we need one more detail",
            (
                "Thank you for writing in. We can’t find invoice {invoice} under the address you wrote from.",
                "Could you tell us the account number, or write from the address that the invoice was sent to? We speak about an invoice"
                " only with the people on its account.",
            ),
        ),
        "de": (
            "Rechnung {invoice}: eine Angabe fehlt uns noch",
            (
                "vielen Dank für Ihre Nachricht. Unter Ihrer Absenderadresse finden wir die Rechnung {invoice} nicht.",
                "Nennen Sie uns bitte die Kontonummer, oder schreiben Sie von der Adresse, an die die Rechnung ging. Auskunft zu einer"
                " Rechnung geben wir nur den Ansprechpartnern des Kontos.",
            ),
        ),
        "pt": (
            "Fatura {invoice}: falta-nos um dado",
            (
                "Obrigado pela sua mensagem. Não encontramos a fatura {invoice} no endereço de onde nos escreveu.",
                "Pode indicar-nos o número da conta, ou escrever do endereço para onde a fatura foi enviada? Só falamos de uma fatura com"
                " os contactos da respetiva conta.",
            ),
        ),
    },
    "invoice_not_named": {
        "en": (
            "Which invoice is it about?",
            (
                "Thank you for writing in. To look into it we need the number of the invoice. It begins with INV- and stands at the top.",
                "As soon as we have it, we will check the payments and write back.",
            ),
        ),
        "de": (
            "Um welche Rechnung geht es?",
            (
                "vielen Dank für Ihre Nachricht. Zum Prüfen brauchen wir die Rechnungsnummer. Sie beginnt mit INV- und steht oben.",
                "Sobald wir sie haben, prüfen wir die Zahlungen und melden uns.",
            ),
        ),
        "pt": (
            "De que fatura se trata?",
            (
                "Obrigado pela sua mensagem. Para verificar precisamos do número da fatura. Começa por INV- e está no topo.",
                "Assim que o tivermos, verificamos os pagamentos e respondemos.",
            ),
        ),
    },
    "address_change": {
        "en": (
            "Your new address",
            (
                "Thank you for telling us. Your new address is with our accounts team and will be on every invoice from the next one on.",
                "If an earlier invoice has to be changed as well, send us its number.",
            ),
        ),
        "de": (
            "Ihre neue Anschrift",
            (
                "vielen Dank für die Nachricht. Ihre neue Anschrift liegt unserer Buchhaltung vor und steht ab der nächsten auf jeder"
                " Rechnung.",
                "Soll auch eine frühere Rechnung geändert werden, schicken Sie uns bitte deren Nummer.",
            ),
        ),
        "pt": (
            "A sua nova morada",
            (
                "Obrigado por nos avisar. A nova morada está com a nossa contabilidade e constará de todas as faturas a partir da próxima.",
                "Se for preciso alterar também uma fatura anterior, envie-nos o número.",
            ),
        ),
    },
    "cannot_sign_in": {
        "en": (
            "Signing in to your account",
            (
                "Thank you for writing in. On the sign-in page, choose “Forgot password” and enter {address}. A link comes by e-mail and"
                " is good for 30 minutes; the newest link is the one that counts.",
                "If no e-mail comes within 10 minutes, look in the spam folder, then reply to this message. We will never ask for your"
                " password.",
            ),
        ),
        "de": (
            "Anmeldung an Ihrem Konto",
            (
                "vielen Dank für Ihre Nachricht. Wählen Sie auf der Anmeldeseite „Passwort vergessen“ und geben Sie {address} ein. Sie"
                " bekommen einen Link per E-Mail, der 30 Minuten gilt; es zählt der neueste.",
                "Kommt innerhalb von 10 Minuten keine E-Mail, sehen Sie bitte im Spam-Ordner nach und antworten Sie dann auf diese"
                " Nachricht. Nach Ihrem Passwort fragen wir nie.",
            ),
        ),
        "pt": (
            "Entrar na sua conta",
            (
                "Obrigado pela sua mensagem. Na página de entrada, escolha “Esqueci-me da palavra-passe” e indique {address}. Recebe por"
                " e-mail uma ligação válida durante 30 minutos; conta a mais recente.",
                "Se em 10 minutos não chegar nenhum e-mail, veja a pasta de spam e depois responda a esta mensagem. Nunca pedimos a sua"
                " palavra-passe.",
            ),
        ),
    },
    "legal": {
        "en": (
            "We have received your notice",
            (
                "Thank you for writing. Your message about “{subject}” has reached us and is with our legal department since today.",
                "They read it together with your account and answer you in writing within 5 working days. Until then this message neither"
                " admits nor rejects anything that you state.",
            ),
        ),
        "de": (
            "Ihr Schreiben ist eingegangen",
            (
                "vielen Dank für Ihr Schreiben. Ihre Nachricht „{subject}“ liegt seit heute unserer Rechtsabteilung vor.",
                "Sie prüft sie zusammen mit Ihrem Konto und antwortet Ihnen schriftlich innerhalb von 5 Werktagen. Bis dahin erkennt diese"
                " Nachricht nichts von dem an, was Sie vortragen, und weist nichts davon zurück.",
            ),
        ),
        "pt": (
            "Recebemos a sua notificação",
            (
                "Obrigado pela sua mensagem. “{subject}” está desde hoje com o nosso departamento jurídico.",
                "Será analisada com a sua conta e responderemos por escrito no prazo de 5 dias úteis. Até lá esta mensagem não"
                " reconhece nem rejeita nada do que afirma.",
            ),
        ),
    },
    "general": {
        "en": (
            "Re: {subject}",
            (
                "Thank you for your message. We have read it and noted it on your account; a colleague who knows the subject will answer"
                " within 1 working day.",
                "You wrote:",
                "{quote}",
            ),
        ),
        "de": (
            "Re: {subject}",
            (
                "vielen Dank für Ihre Nachricht. Wir haben sie gelesen und an Ihrem Konto vermerkt; jemand, der sich damit auskennt,"
                " antwortet innerhalb von 1 Werktag.",
                "Sie schrieben:",
                "{quote}",
            ),
        ),
        "pt": (
            "Re: {subject}",
            (
                "Obrigado pela sua mensagem. Lemo-la e registámo-la na sua conta; um colega que conhece o assunto responde no prazo de"
                " 1 dia útil.",
                "Escreveu-nos:",
                "{quote}",
            ),
        ),
    },
}

OTHER_AMOUNT = {
    "en": "You mention {stated}; the invoice itself is over {amount}.",
    "de": "Sie nennen {stated}; die Rechnung selbst lautet über {amount}.",
    "pt": "Refere {stated}; a fatura em si é de {amount}.",
}

FILES = {
    "en": "We have kept what you sent along: {files}.",
    "de": "Was Sie mitgeschickt haben, liegt uns vor: {files}.",
    "pt": "Guardámos o que enviou em anexo: {files}.",
}

TIMES = {"en": ("twice", "{count} times"), "de": ("zweimal", "{count}-mal"), "pt": ("duas vezes", "{count} vezes")}

NO_PAYMENT = {"en": "None so far.", "de": "Bisher keine.", "pt": "Nenhum até agora."}

# For the note in the CRM, which colleagues read: always in English.
SUMMARIES = {
    "duplicate_found": "{invoice} was paid {count}, by {names}, so the reply promises {surplus} back.",
    "duplicate_not_found": "They ask about a second charge for {invoice}, but the account shows {found}, so nothing is refunded so far.",
    "corrected_invoice": "They want {invoice} again, with the VAT number {vat} and not {vat_before}; it is due within 2 working days.",
    "vat_number_missing": "They want {invoice} with another VAT number but don’t say which, so the reply asks for it.",
    "amount_disputed": "They say that the amount of {invoice}, {amount}, is wrong; billing compares it within 2 working days.",
    "refund": "They ask for a refund of {invoice}, {amount}, paid by {names}; billing decides within 3 working days.",
    "refund_unpaid": "They ask for a refund of {invoice}, {amount}, which has no payment, so the reply asks for the bank’s reference.",
    "invoice_not_found": "They ask about {invoice}, which is not on their account, so the reply asks for the account number.",
    "invoice_not_named": "They ask about an invoice without naming it, so the reply asks for its number.",
    "address_change": "They have a new address, for the next invoice: {quote}",
    "cannot_sign_in": "They can’t sign in, so the reply says how to choose a new password.",
    "legal": "They threaten legal action over “{subject}”, which is for the legal department today; the reply admits nothing.",
    "general": "It needs a colleague’s answer within 1 working day: {subject}",
}

# why nothing is sent, for the run's report: by what sent it, or by what it asks for
NOTHING = {
    "newsletter": "It is a newsletter or a mailing list’s: nobody waits for an answer.",
    "automatic reply": "A program answered by itself: an answer to it could go on for ever.",
    "delivery report": "It is a mail server’s report about a message, and no person’s.",
    "thanks": "It says thanks and asks for nothing.",
}
ORDERS = "The message holds what reads like orders to a machine; none was followed, and what stands beside it was left aside."

NOTED = "A colleague’s note goes into the CRM."

MONTHS = {
    "en": "January February March April May June July August September October November December".split(),  # noqa: SIM905  a line reads better
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember".split(),  # noqa: SIM905
    "pt": "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro".split(),  # noqa: SIM905
}
DATE = {"en": "{day} {month} {year}", "de": "{day}. {month} {year}", "pt": "{day} de {month} de {year}"}
